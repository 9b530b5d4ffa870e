"""The partitioned assets in order: their records of months, single and in a range."""

import gzip
from typing import Any

import pytest

from mail_assets.defs.partitions import asset_key
from mail_assets.month import ListMonth
from mail_assets.sources.folder import FolderSource
from mail_assets.sources.source import SourceError
from mail_assets_tests.defs.dagster_world import CHAIN, OF_ALL_MAIL, DagsterWorld, failure, key
from mail_assets_tests.defs.test_definitions import CHECKS
from mail_assets_tests.world import APRIL, HARBOR, LATER, MARCH, MAY, mail

#: Names of the figures of each asset; they must not change, because the UI plots them over time.
FIGURES = {
    "mbox_archives": {"found", "bytes", "fetched", "seconds"},
    "messages": {
        *("found", "stored", "duplicates", "quarantined", "variants", "undated", "suspicious"),
        *("bytes", "written", "deleted", "seconds", "messages_per_second"),
    },
    "words": {"documents", "written", "deleted", "seconds", "documents_per_second"},
    "chunks": {*("messages", "chunks", "tokens", "tokens_max", "truncated", "written", "deleted"),
               *("seconds", "chunks_per_second")},
    "embeddings": {*("texts", "tokens", "encoded", "reused", "bytes", "seconds",
                     "chunks_per_second"), *("left", "hours_left")},
    "vectors": {"chunks", "written", "deleted", "seconds", "vectors_per_second"},
}  # fmt: skip
ROWS = {
    "mbox_archives": "found",
    "messages": "stored",
    "words": "documents",
    "chunks": "chunks",
    "embeddings": "texts",
    "vectors": "chunks",
}


def test_month_records_its_figures(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("a"))
    result, graph = world.month(MARCH), world.defs.resolve_asset_graph()
    assert result.success
    for asset, figures in FIGURES.items():
        [metadata] = world.recorded(result, asset).values()
        assert figures <= metadata.keys(), asset
        assert all(isinstance(metadata[name], int | float) for name in figures)
        assert metadata["dagster/partition_row_count"] == metadata[ROWS[asset]]
        assert "dagster/column_schema" not in metadata, "it is most of an event, and never changes"
        schema = graph.get(asset_key(asset)).metadata["dagster/column_schema"]
        assert all(column.description for column in schema.columns), asset
        assert metadata["dagster/table_name"]
    messages = world.recorded(result, "messages")[key(MARCH)]
    assert (messages["found"], messages["stored"], messages["duplicates"]) == (3, 2, 1)
    assert messages["dagster/row_count"] == 2
    assert messages["dagster/table_name"].endswith(".public.messages")
    embeddings = world.recorded(result, "embeddings")[key(MARCH)]
    assert embeddings["dagster/uri"].endswith(f"{embeddings['fingerprint']}.parquet")
    assert (embeddings["encoded"], embeddings["reused"]) == (2, 0)
    assert (embeddings["left"], embeddings["hours_left"]) == (0, 0)
    said = tuple(embeddings[name] for name in ("model", "precision", "provider"))
    assert said == ("all-minilm-l6-v2", "int8", "cpu")
    assert world.recorded(result, "vectors")[key(MARCH)]["written"] == 2
    names = {name for asset, name, _ in CHECKS if asset in CHAIN}
    assert {check.check_name for check in result.get_asset_check_evaluations()} == names
    assert all(check.passed for check in result.get_asset_check_evaluations())


def test_embeddings_record_what_is_left_to_encode(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    world.archive(APRIL, mail("c"), mail("d"), mail("e"))
    before = CHAIN[: CHAIN.index("embeddings")]
    assert world.range(key(MARCH), key(APRIL), select=before).success
    encoded = world.recorded(world.month(MARCH, select=("embeddings",)), "embeddings")[key(MARCH)]
    assert encoded["left"] == 3
    expected = 3 * encoded["seconds"] / encoded["encoded"] / 3600
    assert encoded["hours_left"] == pytest.approx(expected, abs=0.006)
    again = world.recorded(world.month(MARCH, select=("embeddings",)), "embeddings")[key(MARCH)]
    assert (again["encoded"], again["left"]) == (0, 3)
    assert "hours_left" not in again  # nothing was encoded, so there is no rate


def test_data_version_changes_only_with_the_data(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    first = world.month(MARCH)
    before = world.writes()
    again = world.month(MARCH)
    assert world.writes() == before
    world.archive(MARCH, mail("a"), mail("b"), mail("c", from_line=LATER), at=1)
    changed = world.month(MARCH)
    for asset in OF_ALL_MAIL:
        assert world.version(first, asset) == world.version(again, asset)
        assert world.version(changed, asset) != world.version(first, asset)
    for asset, written in [("messages", 1), ("words", 1), ("chunks", 1), ("vectors", 1)]:
        assert world.recorded(again, asset)[key(MARCH)]["written"] == 0
        assert world.recorded(changed, asset)[key(MARCH)]["written"] == written
    assert world.recorded(changed, "embeddings")[key(MARCH)]["reused"] == 2


def test_range_records_each_month_with_its_own_figures(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(MAY, mail("b"), mail("c"))
    result = world.range(key(MARCH), key(MAY))
    assert result.success
    for asset in OF_ALL_MAIL:
        months = world.recorded(result, asset)
        assert {m: figures[ROWS[asset]] for m, figures in months.items()} == {
            key(MARCH): 1,
            key(APRIL): 0,
            key(MAY): 2,
        }
        for figures in months.values():
            assert figures["dagster/partition_row_count"] == figures[ROWS[asset]]
    notes = {m: f.get("note", "") for m, f in world.recorded(result, "mbox_archives").items()}
    assert [m for m, note in notes.items() if note] == [key(APRIL)]
    uris = {figures["dagster/uri"] for figures in world.recorded(result, "embeddings").values()}
    assert len(uris) == 3


def test_month_next_to_a_broken_one_has_its_own_version(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    broken = world.range(key(MARCH), key(APRIL), select=CHAIN[:1])
    alone = world.month(MARCH, select=CHAIN[:1])
    assert world.version(broken, "mbox_archives") == world.version(alone, "mbox_archives")


def test_only_a_retryable_fault_is_retried(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    fetch, calls = FolderSource.fetch, []

    def down_twice(source: FolderSource, month: ListMonth, *rest: Any) -> Any:
        calls.append(month.month)
        if calls.count(APRIL) <= 2 and month.month == APRIL:
            raise SourceError("the server is down", retryable=True)
        return fetch(source, month, *rest)

    monkeypatch.setattr(FolderSource, "fetch", down_twice)
    result = world.range(key(MARCH), key(APRIL), select=CHAIN[:2])
    assert result.success
    assert calls == [MARCH, APRIL] * 3
    assert world.recorded(result, "messages").keys() == {key(MARCH), key(APRIL)}
    assert sum(f["fetched"] for f in world.recorded(result, "mbox_archives").values()) == 1


def test_damaged_file_of_a_folder_is_read_once(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.folder() / f"{HARBOR}.{MARCH}.mbox.gz"
    path.write_bytes(gzip.compress(mail("a"))[:-20])
    fetch, calls = FolderSource.fetch, []

    def count(source: FolderSource, month: ListMonth, *rest: Any) -> Any:
        calls.append(month.month)
        return fetch(source, month, *rest)

    monkeypatch.setattr(FolderSource, "fetch", count)
    result = world.month(MARCH, select=CHAIN[:1])
    assert f"{path} is refused: gzip data is damaged" in failure(result).description
    assert calls == [MARCH]


def test_failing_blocking_check_stops_what_comes_after(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    world.spoil_chunks()
    result = world.month(MARCH)
    assert not result.success
    [wrong] = [c for c in result.get_asset_check_evaluations() if not c.passed]
    assert wrong.check_name == "spans_point_into_bodies"
    assert world.recorded(result, "chunks").keys() == {key(MARCH)}
    assert world.recorded(result, "embeddings") == {}


def test_warning_check_stops_nothing(world: DagsterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.archive(MARCH, mail("a"))
    monkeypatch.setattr("mail_assets.defs.checks.mail.MAX_QUARANTINED", -1.0)
    result = world.month(MARCH)
    assert result.success
    assert [c.check_name for c in result.get_asset_check_evaluations() if not c.passed] == [
        "few_quarantined"
    ]


def test_loss_is_accepted_with_allow_loss(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("c"))
    world.month(MARCH, select=CHAIN[:1])
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").unlink()
    refused = world.month(MARCH, select=CHAIN[:1])
    assert "has vanished" in failure(refused).description
    config = {"ops": {"mail__mbox_archives": {"config": {"allow_loss": True}}}}
    assert world.month(MARCH, select=CHAIN[:1], config=config).success


def test_threads_are_recorded_for_the_whole_corpus(world: DagsterWorld) -> None:
    world.load(mail("a"), mail("b", references="<a@example.org>"))
    result = world.month(MARCH, select=("threads",))
    assert result.success
    [metadata] = world.recorded(result, "threads").values()
    assert (metadata["messages"], metadata["threads"], metadata["ghosts"]) == (2, 1, 0)
    assert metadata["dagster/row_count"] == 2
    assert world.version(world.month(MARCH, select=("threads",)), "threads") == world.version(
        result, "threads"
    )
