"""`search_audit` counts searches; `search_quality` measures a judged set."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.assets.search import UNSET, Figures, sum_up
from mail_assets.defs.checks.index import search_quality_holds
from mail_assets.defs.partitions import asset_key
from mail_assets.evaluation.judged import read_set
from mail_assets.evaluation.quality import build_judge
from mail_assets.indexes.live import LifecycleError, Promotion, promote_vectors
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.vectors import MailVectors, index_spec
from mail_assets.month import ListMonth
from mail_assets.search.language.request import MODES
from mail_assets.search.open import open_searcher
from mail_assets.steps.fill_index import write_vectors
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.tables.search_audit import DayPart, SearchKind, add_searches
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.defs.dagster_world import (
    DagsterWorld,
    KeptDagster,
    failure,
    kept_dagster,
)
from mail_assets_tests.world import HARBOR, MARCH, PROFILE, mail


def materialize(world: DagsterWorld) -> dict[str, Any]:
    """Return the metadata of a run of search_audit."""
    result = world.month(MARCH, select=("search_audit",))
    [metadata] = world.recorded(result, "search_audit").values()
    return metadata


def test_search_audit_takes_over_served_searches(world: DagsterWorld) -> None:
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
    } == {"searches": 9, "errors": 1, "refused": 0, "p50_ms": 50, "p95_ms": 50}
    assert (shown["nothing_found"], shown["changed"]) == (0.25, 4)
    for surface in ("mcp", "page"):
        assert f"'of': '{surface}'" in repr(shown["surfaces"])
    again = materialize(world)
    assert (again["searches"], again["changed"]) == (9, 0)


DAY = dt.date(2024, 3, 4)


def part(ms: int, searches: int, hits: int = 10, status: int = 200) -> DayPart:
    return DayPart(DAY, "page", hits, ms, status, searches)


def test_figures_sum_up_searches() -> None:
    parts = [
        part(50, 90),
        part(20, 5, hits=0),
        part(1000, 5),
        part(1, 3, 0, 400),
        part(5, 1, 0, 503),
    ]
    assert sum_up(parts) == Figures(104, 1, 3, 0.05, 50, 50)
    assert sum_up([part(10, 94), part(300, 6)]).p95_ms == 300
    assert sum_up([part(10, 95), part(300, 5)]).p95_ms == 10


def test_figures_without_answers_have_no_times() -> None:
    assert sum_up([]) == Figures(0, 0, 0, None, None, None)
    assert sum_up([part(1, 2, 0, 503)]) == Figures(2, 2, 0, None, None, None)


#: Three messages on each of three subjects; none has a word of its question.
MAIL = {
    "cat": ("The kitten sleeps on the warm sofa all day.", "when do cats take naps on a couch"),
    "ship": ("A freighter left the harbour heavily laden.", "vessels going to sea with cargo"),
    "bread": ("Mix flour and yeast, and bake the loaves until golden.", "how to make bread"),
}
INT8, FP32 = (index_spec(PROFILE, precision).name for precision in ("int8", "fp32"))


def fill(world: DagsterWorld, _: pytest.MonkeyPatch) -> None:
    """Fill a month, and its index with the real model."""
    world.archive(
        MARCH,
        *(mail(f"{thing}{n}", f"{text} {n}.") for thing, (text, _) in MAIL.items() for n in "123"),
    )
    assert world.month(MARCH).success


filled = kept_dagster(fill)


@pytest.fixture
def measured(
    filled: KeptDagster, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """A filled month with judged queries."""
    with filled.copied(model_cache, monkeypatch) as world:
        world.quality_set = world.home / "judged"
        judge_as(world, {thing: thing for thing in MAIL})
        yield world


def judge_as(world: DagsterWorld, right: dict[str, str]) -> None:
    """Write the judged set: a query for each subject, and the subject whose mails answer it."""
    assert world.quality_set
    world.quality_set.mkdir(exist_ok=True)
    queries = [json.dumps({"_id": thing, "text": MAIL[thing][1]}) for thing in right]
    qrels = [f"{one}\t<{name}{n}@example.org>\t1" for one, name in right.items() for n in "123"]
    (world.quality_set / "queries.jsonl").write_text("\n".join(queries))
    (world.quality_set / "qrels.tsv").write_text("\n".join(qrels))


def measure(world: DagsterWorld, **config: Any) -> dg.ExecuteInProcessResult:
    ops = {"ops": {"mail__search_quality": {"config": config}}}
    return world.month(MARCH, select=("search_quality",), config=ops)


def recorded(world: DagsterWorld, result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [metadata] = world.recorded(result, "search_quality").values()
    return metadata


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    [evaluation] = result.get_asset_check_evaluations()
    return evaluation


def fill_with_hashes(world: DagsterWorld, bucket: str) -> None:
    """Fill an fp32 index with vectors made of hashes; it becomes live if none is."""
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
    """Promote an index, as `mail-assets index promote` does."""
    assert world.quality_set
    settings = world.settings().search
    judge = build_judge(
        read_set(world.quality_set).queries, lambda index: open_searcher(settings, index=index)
    )
    bucket = MailBucket(open_bucket(world.bucket), world.bucket)
    with world.connect() as connection:
        return promote_vectors(connection, bucket, name, force=force, judge=judge)


def test_quality_records_nothing_without_a_judged_set(
    world: DagsterWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    result = measure(world)
    assert result.success
    assert UNSET in capfd.readouterr().err
    assert world.recorded(result, "search_quality") == {}
    assert result.get_asset_check_evaluations() == []


def test_measurement_is_compared_with_the_first(measured: DagsterWorld) -> None:
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
        "the first measurement of this index: later ones are compared with it",
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


def test_upkeep_compares_quality_with_its_history(measured: DagsterWorld) -> None:
    upkeep = measured.defs.resolve_job_def("upkeep")
    for description in ("the first measurement of ", "against its first measurement on "):
        result = upkeep.execute_in_process(
            instance=measured.instance, op_selection=["measure_quality"]
        )
        assert result.success
        [key] = search_quality_holds.check_keys
        found = measured.checks()[key]
        assert (found.description or "").startswith(description)
    assert len(measured.instance.get_runs()) == 3, "the month, and no run in a run"


def test_materialization_by_hand_is_no_measurement(measured: DagsterWorld) -> None:
    by_hand = dg.AssetMaterialization(asset_key("search_quality"))
    measured.instance.report_runless_asset_event(by_hand)
    assert "first measurement" in (check(measure(measured)).description or "")
    measured.instance.report_runless_asset_event(by_hand)
    again = measure(measured)
    assert again.success
    assert "against its first measurement on " in (check(again).description or "")


def test_worse_index_is_shown_and_refused_unless_forced(measured: DagsterWorld) -> None:
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

    before = measured.check(search_quality_holds)
    assert (before.passed, before.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert f"last measured of index {INT8}, live is {FP32}" in (before.description or "")

    held = check(measure(measured))
    assert held.passed
    assert (held.description or "").startswith("against its promotion on ")
    assert not switch(measured, INT8).forced, "the better one is not refused"


def test_quality_asks_another_bucket_if_a_run_names_it(measured: DagsterWorld) -> None:
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
def test_quality_names_what_it_cannot_measure(world: DagsterWorld, spoil: Any, said: str) -> None:
    world.quality_set = world.home / "judged"
    judge_as(world, {thing: thing for thing in MAIL})
    spoil(world.quality_set)
    reported = failure(measure(world))
    assert reported
    assert re.search(said, reported.description)


def test_quality_check_says_what_to_do_if_not_measured(world: DagsterWorld) -> None:
    result = world.check(search_quality_holds)
    assert not result.passed
    assert result.description == (
        "never measured: set MAIL_QUALITY_SET and materialize search_quality"
    )
