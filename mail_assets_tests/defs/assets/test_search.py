"""The asset `search_audit`: takes over what was served, and shows it.

[test_search_quality] `search_quality` measures a judged set, its check holds search to it, promotion asks it too.
"""

import datetime as dt
import json
import re
from functools import partial
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.assets.search import UNSET
from mail_assets.defs.partitions import asset_key
from mail_assets.evaluation.judged import read_judged_set
from mail_assets.evaluation.quality import build_judge
from mail_assets.indexes.live import LifecycleError, Promotion, promote_vectors
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.vectors import MailVectors, index_spec
from mail_assets.month import ListMonth
from mail_assets.search.language.request import MODES
from mail_assets.search.open import open_searcher
from mail_assets.steps.write_vectors import write_vectors
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.tables.search_audit import SearchKind, add_searches
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.defs.dagster_world import CHAIN, DagsterWorld, failure
from mail_assets_tests.world import HARBOR, MARCH, PROFILE, mail


def materialize(world: DagsterWorld) -> dict[str, Any]:
    """Return the metadata of a run of the job."""
    job = world.defs.resolve_job_def("count_searches")
    assert job.execute_in_process(instance=world.instance).success
    event = world.instance.get_latest_materialization_event(asset_key("search_audit"))
    assert event
    assert event.asset_materialization
    return {name: one.value for name, one in event.asset_materialization.metadata.items()}


def test_what_was_served_is_taken_over_and_shown(world: DagsterWorld) -> None:
    now = dt.datetime.now(dt.UTC).replace(minute=0, second=0, microsecond=0)
    page = SearchKind(now, "page", "hybrid", (), (), 10, 50, 200)
    old = page._replace(hour=now - dt.timedelta(days=40))
    with world.connect() as connection:
        empty = materialize(world)
        add_searches(connection, {page: 6, page._replace(hits=0): 2, old: 5})
        add_searches(connection, {page._replace(surface="mcp", status=503): 1})
    assert (empty["searches"], empty["changed"]) == (0, 0)
    assert not {"p50_ms", "nothing_found"} & empty.keys()
    shown = materialize(world)
    assert {
        name: shown[name] for name in ("searches", "errors", "refused", "p50_ms", "p95_ms")
    } == {
        "searches": 9,
        "errors": 1,
        "refused": 0,
        "p50_ms": 50,
        "p95_ms": 50,
    }
    assert (shown["nothing_found"], shown["changed"]) == (0.25, 4)
    for surface in ("mcp", "page"):
        assert f"'of': '{surface}'" in repr(shown["surfaces"])
    again = materialize(world)
    assert (again["searches"], again["changed"]) == (9, 0)


#: Three messages on each of three things, none of which shares a word with its question.
MAIL = {
    "cat": ("The kitten sleeps on the warm sofa all day.", "what do pets like to do"),
    "ship": ("A freighter left the harbour heavily laden.", "vessels going to sea with cargo"),
    "bread": ("Knead dough, let it rise, bake until golden.", "how is a loaf made in an oven"),
}
INT8, FP32 = (index_spec(PROFILE, precision).name for precision in ("int8", "fp32"))


@pytest.fixture
def measured(world: DagsterWorld) -> DagsterWorld:
    """A month in the index, made by the real model, and queries judged on it."""
    world.archive(
        MARCH,
        *(mail(f"{thing}{n}", f"{text} {n}.") for thing, (text, _) in MAIL.items() for n in "123"),
    )
    assert world.month(MARCH).success
    world.quality_set = world.home / "judged"
    judge_as(world, {thing: thing for thing in MAIL})
    return world


def judge_as(world: DagsterWorld, right: dict[str, str]) -> None:
    """Write the judged set: a query for each thing, and the thing whose mails answer it."""
    assert world.quality_set
    world.quality_set.mkdir(exist_ok=True)
    queries = [json.dumps({"_id": thing, "text": MAIL[thing][1]}) for thing in right]
    qrels = [f"{one}\t<{name}{n}@example.org>\t1" for one, name in right.items() for n in "123"]
    (world.quality_set / "queries.jsonl").write_text("\n".join(queries))
    (world.quality_set / "qrels.tsv").write_text("\n".join(qrels))


def measure(world: DagsterWorld, **config: Any) -> dg.ExecuteInProcessResult:
    return world.defs.resolve_job_def("measure_quality").execute_in_process(
        instance=world.instance,
        run_config={"ops": {"mail__search_quality": {"config": config}}},
        raise_on_error=False,
    )


def recorded(world: DagsterWorld, result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [metadata] = world.recorded(result, "search_quality").values()
    return metadata


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    [evaluation] = result.get_asset_check_evaluations()
    return evaluation


def fill_with_hashes(world: DagsterWorld, bucket: str) -> None:
    """Fill an fp32 index with vectors that mean nothing; it is live where none is."""
    world.embeddings()
    index = open_bucket(bucket).index(index_spec(PROFILE, "fp32"))
    fingerprint = world.encoder.fingerprint
    with world.workspace() as workspace:
        record = NewIndex(FP32, PROFILE, "fp32", fingerprint)
        record_index(workspace.connection, bucket, record)
        write_vectors(
            workspace,
            ListMonth(HARBOR, MARCH),
            MailVectors(index, bucket, PROFILE, "fp32", fingerprint),
        )
        make_first_live(workspace.connection, bucket, FP32)


def switch(world: DagsterWorld, name: str, *, force: bool = False) -> Promotion:
    """Do what `mail-assets index promote` does."""
    assert world.quality_set
    settings = world.settings().search
    judge = build_judge(
        read_judged_set(world.quality_set), lambda index: open_searcher(settings, index=index)
    )
    bucket = MailBucket(open_bucket(world.bucket), world.bucket)
    with world.connect() as connection:
        return promote_vectors(connection, bucket, name, force=force, judge=judge)


def test_without_a_judged_set_nothing_is_recorded_and_the_log_says_what_to_set(
    world: DagsterWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    result = measure(world)
    assert result.success
    assert UNSET in capfd.readouterr().err
    assert world.recorded(result, "search_quality") == {}
    assert result.get_asset_check_evaluations() == []


def test_a_run_of_everything_succeeds_without_a_judged_set(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    result = world.month(MARCH, select=(*CHAIN, "threads", "search_quality"))
    assert result.success
    assert world.recorded(result, "search_quality") == {}


def test_each_measurement_is_compared_with_the_first(
    measured: DagsterWorld,
) -> None:
    first = measure(measured)
    assert first.success
    metadata = recorded(measured, first)
    assert (metadata["index"], metadata["queries"]) == (INT8, 3)
    assert metadata["hybrid_ndcg10"] == metadata["semantic_ndcg10"] == 1.0
    assert metadata["semantic_p50_ms"] > 0
    assert [row.data["mode"] for row in metadata["modes"].records] == [*MODES]
    assert metadata["worst"].records == []
    assert metadata["topics"]["hybrid"] == dict.fromkeys(MAIL, 1.0)
    assert (check(first).passed, check(first).description) == (
        True,
        "the first measurement of this index: later ones are held to it",
    )

    again = check(measure(measured))
    assert again.passed
    assert (again.description or "").startswith("against its first measurement on ")

    with measured.connect() as connection:
        connection.execute(b"delete from chunks where message_id like 'ship%'")
        connection.execute(b"delete from messages where message_id like 'ship%'")
    result = measure(measured)
    assert result.success, "it blocks nothing"
    dropped = check(result)
    assert (dropped.passed, dropped.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "ship 1.00 to 0.00" in (dropped.description or "")
    assert dropped.metadata["hybrid_difference"].value == pytest.approx(-1 / 3, abs=1e-3)
    assert "bread" not in (dropped.description or "")
    [worst] = recorded(measured, result)["worst"].records
    assert (worst.data["query_id"], worst.data["hybrid_ndcg10"]) == ("ship", 0.0)

    judge_as(measured, {"cat": "cat", "bread": "bread"})
    another = check(measure(measured))
    assert (another.passed, another.description) == (True, check(first).description)


def test_a_materialization_reported_by_hand_is_no_measurement(measured: DagsterWorld) -> None:
    by_hand = dg.AssetMaterialization(asset_key("search_quality"))
    measured.instance.report_runless_asset_event(by_hand)
    assert "first measurement" in (check(measure(measured)).description or "")
    measured.instance.report_runless_asset_event(by_hand)
    again = measure(measured)
    assert again.success
    assert "against its first measurement on " in (check(again).description or "")


def test_a_worse_index_is_shown_beside_refused_and_the_check_is_held_to_the_promotion(
    measured: DagsterWorld,
) -> None:
    fill_with_hashes(measured, measured.bucket)
    modes = [row.data for row in recorded(measured, measure(measured))["modes"].records]
    assert [(row["index"], row["live"], row["mode"]) for row in modes] == [
        *((INT8, True, mode) for mode in MODES),
        *((FP32, False, mode) for mode in ("hybrid", "semantic")),
    ]
    alone = recorded(measured, measure(measured, beside=False))
    assert len(alone["modes"].records) == 3

    with pytest.raises(LifecycleError, match=r"not fit to be live: hybrid nDCG@10 0\.\d+ after 1"):
        switch(measured, FP32)
    forced = switch(measured, FP32, force=True)
    assert (forced.forced, forced.report["quality_replaced"]["hybrid_ndcg10"]) == (True, 1.0)

    stale = dg.AssetSelection.checks_for_assets(asset_key("search_quality"))
    job = dg.define_asset_job("look", selection=stale)
    defs = dg.Definitions.merge(measured.defs, dg.Definitions(jobs=[job]))
    look = partial(defs.resolve_job_def("look").execute_in_process, instance=measured.instance)
    before = check(look())
    assert (before.passed, before.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert f"last measured of index {INT8}, live is {FP32}" in (before.description or "")

    held = check(measure(measured))
    assert held.passed
    assert (held.description or "").startswith("against its promotion on ")
    assert not switch(measured, INT8).forced, "the better one is not refused"


def test_another_bucket_is_asked_beside_where_a_run_names_it(measured: DagsterWorld) -> None:
    other = f"lance:{measured.home / 'other'}"
    fill_with_hashes(measured, other)
    metadata = recorded(measured, measure(measured, buckets=[other]))
    modes = [row.data for row in metadata["modes"].records]
    assert [(row["bucket"], row["index"]) for row in modes] == [
        *[(measured.bucket, INT8)] * 3,
        *[(other, FP32)] * 3,
    ]
    assert (metadata["index"], metadata["semantic_ndcg10"]) == (INT8, 1.0)
    assert not modes[4]["ndcg@10"].startswith("1.000"), "vectors that mean nothing"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "qrels.tsv").write_text("cat\n"), "qrels.tsv, line 1: must be"),
        (lambda folder: (folder / "qrels.tsv").write_text(""), "no query of .* has 3 relevant"),
        (lambda folder: None, "nothing is indexed yet; run `mail-assets backfill`"),
    ],
)
def test_what_cannot_be_measured_is_named(world: DagsterWorld, spoil: Any, said: str) -> None:
    world.quality_set = world.home / "judged"
    judge_as(world, {thing: thing for thing in MAIL})
    spoil(world.quality_set)
    reported = failure(measure(world))
    assert reported
    assert re.search(said, reported.description)


def test_a_check_of_what_was_never_measured_says_what_to_do(world: DagsterWorld) -> None:
    job = dg.define_asset_job(
        "look", selection=dg.AssetSelection.checks_for_assets(asset_key("search_quality"))
    )
    defs = dg.Definitions.merge(world.defs, dg.Definitions(jobs=[job]))
    result = defs.resolve_job_def("look").execute_in_process(instance=world.instance)
    assert not check(result).passed
    assert check(result).description == (
        "never measured: set MAIL_QUALITY_SET and materialize search_quality"
    )
