"""Test queries in Dagster show the whole response and escape the text of mail."""

import re
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.definitions import build_defs
from mail_assets.defs.query_job import answer_markdown, response_metadata
from mail_assets_tests.defs.dagster_world import failure
from mail_assets_tests.sample_corpus import QUERY, Corpus, Search


@pytest.fixture
def ask(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that runs the job and returns its result: `ask("query", mode="fulltext")`."""
    monkeypatch.setenv("MAIL_PG_DSN", corpus.settings.pg_dsn)
    with dg.DagsterInstance.ephemeral() as instance:

        def ask(*queries: str, **config: Any) -> dg.ExecuteInProcessResult:
            run_config = {"config": {"queries": [*queries], **config}}
            job = build_defs(corpus.settings).resolve_job_def("test_queries")
            return job.execute_in_process(
                instance=instance,
                run_config={"ops": {"serve_test_queries": run_config}},
                raise_on_error=False,
            )

        yield ask


def shown(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = [e for e in result.all_events if e.event_type == dg.DagsterEventType.STEP_OUTPUT]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def test_test_queries_show_hits_places_and_explanation(ask: Any, search: Search) -> None:
    best = search(QUERY, limit=3, group="message").hits[0]
    metadata = shown(ask(QUERY, "list:harbor-es ballenas", limit=3, group="message"))
    answers = ("hits", "answer_1", "answer_2")
    assert [*metadata] == [*answers, "details", "explain_1", "explain_2"]
    found = [record.data for record in metadata["hits"].records]
    assert [row["rank"] for row in found if row["query"] == QUERY] == [1, 2, 3]
    assert (found[0]["subject"], found[0]["date"]) == (best.subject, best.sent_at[:10])
    assert found[0]["text"]
    assert metadata["explain_1"]["ms"].keys() >= {"words", "nearest", "stored"}
    assert r"group\:message limit\:3 list\:harbor\-es ballenas" in metadata["answer_2"]
    hit = place = metadata["details"].records[0].data
    assert (hit["query"], hit["rank"]) == (QUERY, 1)
    assert {leg: hit[leg] for leg in best.why.ranks} == best.why.ranks
    assert hit["distance"] == pytest.approx(best.why.distance, abs=0.001)
    assert hit["words"].split(", ") == [*best.why.words]
    assert (place["message_id"], place["thread_id"]) == (best.message_id, best.thread_id)
    [chunk, *_] = best.chunks
    assert place["spans"] == ", ".join(f"{start}-{end}" for start, end in chunk.spans)
    assert len(place["highlights"].split(", ")) == len(chunk.highlights)
    assert metadata["explain_1"]["mix"]
    assert "**worker" in metadata["answer_1"]


def test_log_has_the_hits_of_each_query(ask: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask(QUERY, limit=2, group="message").success
    printed = capfd.readouterr().err
    _, _, answer = printed.partition(f"{QUERY!r}: 2 hits, ")
    first, text, second = answer.splitlines()[1:4]
    assert first.startswith(" 1. ")
    assert text.startswith("    ")
    assert second.startswith(" 2. ")


def test_every_column_of_every_row_is_in_its_schema(search: Search) -> None:
    metadata = response_metadata(
        [search(QUERY, explain=True), search("from:nobody@example.org lease")]
    )
    for name in ("hits", "details"):
        table = metadata[name]
        columns = [column.name for column in table.schema.columns]
        assert all([*record.data] == columns for record in table.records)


def test_hostile_mail_is_shown_as_it_stands(search: Search) -> None:
    response = search("DROP TABLE messages", mode="fulltext", lists=("harbor-es",))
    text = answer_markdown(response)
    assert r"\'\; drop table messages\; \-\-" in text
    assert "Robert\\'\\)\\;" in text.replace("**", "")


def test_search_without_its_quotes_is_named(search: Search) -> None:
    text = answer_markdown(search('lease "zzgarble nowhere"'))
    assert r"found with \"zzgarble nowhere\"\: searched without quotes" in text


@pytest.mark.parametrize(
    ("query", "config", "said"),
    [
        ("has:wings lease", {}, r"'has:wings lease': .*allowed"),
        ("lease", {"after": "soon"}, "'soon' is no day"),
    ],
)
def test_wrong_query_is_named_before_any_is_asked(
    ask: Any, query: str, config: dict[str, Any], said: str
) -> None:
    assert re.search(said, failure(ask(QUERY, query, **config)).description)


@pytest.mark.parametrize(
    ("name", "values"),
    [("mode", ["hybrid", "semantic", "fulltext"]), ("group", ["conversation", "message"])],
)
def test_modes_and_groups_are_choices_of_the_launchpad(
    ask: Any, name: str, values: list[str]
) -> None:
    for value in values:
        assert ask("lease", **{name: value}).success
    with pytest.raises(dg.DagsterInvalidConfigError, match="fuzzy"):
        ask("lease", **{name: "fuzzy"})
