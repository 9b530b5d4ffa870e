"""Removals of another home have the same effect as removals of this home."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mail_assets.forgetting.forget import ForgetReport, ForgetRequest, forget_again
from mail_assets.month import ListMonth
from mail_assets.operations.backup import BackupPlan, back_up, restore_backup, restore_forgotten
from mail_assets.postgres.embedded import Cluster
from mail_assets.reading.browsing import read_stats
from mail_assets.store.embeddings import file_key, read_embeddings, write_embeddings
from mail_assets.tables.checks import MessageCounts, count_months
from mail_assets.tables.removals import list_removals, read_forgotten
from mail_assets.tables.removed_messages import count_rows_left, count_threads_left
from mail_assets_tests.databases import drop_database, new_database
from mail_assets_tests.kept_worlds import KeptWorlds
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail

EVE = "eve@example.net"
REQUEST = ForgetRequest(["secret@example.org"], [EVE], "asked to", "the postmaster")
TRACES = ("secret@example.org", "hers@example.org", EVE, "sleeps on tuesdays", "high tide")

ROOT = mail("root")
SECRET = mail("secret", "The master sleeps on Tuesdays.", references="<root@example.org>")
HERS = mail("hers", "At high tide.", sender=EVE, references="<root@example.org>")
ANSWER = mail(
    "answer", references="<root@example.org> <hers@example.org>", headers=f"Cc: Eve <{EVE}>"
)
MONTHS = [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)]


@contextmanager
def new_world(folder: Path, cluster: Cluster) -> Iterator[World]:
    dsn = new_database(cluster)
    world = World(folder, dsn)
    world.keep_days = 30
    yield world
    drop_database(cluster, dsn)


def fill(world: World) -> None:
    world.fill(MARCH, APRIL)


def fill_here(world: World) -> None:
    world.keep_days = 30
    world.archive(MARCH, ROOT, SECRET, HERS, mail("b"))
    world.archive(APRIL, ANSWER)
    fill(world)


def fill_there(world: World) -> None:
    fill_here(world)


@pytest.fixture
def worlds(kept_worlds: KeptWorlds) -> Iterator[tuple[World, World]]:
    """Two homes filled from the same archives, both with vanished mail."""
    with kept_worlds.filled(fill_here) as here, kept_worlds.filled(fill_there) as there:
        yield here, there


def forget(world: World, request: ForgetRequest = REQUEST) -> ForgetReport:
    report = world.forget(request)
    world.cut(report)
    return report


def take_over(world: World, folder: Path) -> ForgetReport:
    restore_forgotten(world.dsn, world.forget_key, folder)
    with world.workspace() as workspace:
        report = forget_again(workspace, world.open_index)
    assert world.cut(report)[1] == {}
    return report


def save(world: World, folder: Path, whole: bool = False) -> Path:
    with world.workspace() as workspace:
        back_up(workspace, folder, BackupPlan({"mail": world.dsn} if whole else {}))
    return folder


def traces(world: World) -> list[str]:
    tables = world.rows("pg_tables", "tablename", "schemaname = 'public'")
    rows = "\n".join(str(world.rows(f'"{name}" as t', "t::text")) for (name,) in tables).lower()
    return [trace for trace in TRACES if trace in rows]


def held(world: World) -> bytes:
    return b"".join((world.home / "store" / key).read_bytes() for key in world.store.keys("arch"))


def left(world: World) -> int:
    with world.connect() as connection:
        forgotten = read_forgotten(connection, world.forget_key)
        return sum(
            count_rows_left(connection, month, forgotten)
            + count_threads_left(connection, month, forgotten)
            for month in MONTHS
        )


def figures(world: World) -> tuple[object, ...]:
    with world.connect() as connection:
        counts = count_months(connection, MONTHS, MessageCounts)
        assert all(one.balanced for one in counts.values())
        copies = sorted((one.kind, one.copies) for one in list_removals(connection))
        stats = read_stats(connection, [HARBOR], "vectors", "words")
        return counts, copies, stats


@pytest.mark.parametrize("cut", [False, True], ids=["keep", "rewrite"])
def test_restored_removals_leave_what_forgetting_here_leaves(
    worlds: tuple[World, World], tmp_path: Path, cut: bool
) -> None:
    here, there = worlds
    for world in worlds:  # what an encoder that is not configured has made
        vectors = read_embeddings(world.store, file_key(MONTHS[0], world.encoder.fingerprint))
        write_embeddings(world.store, file_key(MONTHS[0], "other"), vectors, "other")
    forget(there, REQUEST._replace(cut=cut))
    report = take_over(here, save(there, tmp_path / "newer"))
    assert (len(report.copies), report.vectors, report.people) == (2, 2, 1)
    for _ in range(2):
        assert traces(here) == []
        assert left(here) == 0
        assert (b"Tuesdays" in held(here), b"high tide" in held(here)) == (not cut, not cut)
        assert here.rows("threads") == there.rows("threads")
        assert figures(here) == figures(there)
        mine, theirs = here.holds(), there.holds()
        for what in ("messages", "chunks", "manifest", "files", "bucket", "documents"):
            assert mine[what] == theirs[what], what
        for world in worlds:
            fill(world)
    again = take_over(here, tmp_path / "newer")
    assert (again.removals, again.vectors, again.files) == (frozenset(), 0, 0)


def test_list_that_is_no_longer_filled_forgets_too(
    worlds: tuple[World, World], tmp_path: Path
) -> None:
    here, there = worlds
    forget(there)
    with there.connect() as connection:  # its archive had another message in front
        connection.execute("update removed_messages set ordinal = ordinal - 1")
    take_over(here, save(there, tmp_path / "newer"))
    assert traces(here) == []
    assert figures(here)
    assert len(here.rows("removed_messages")) == 2


def test_ids_loaded_before_removal_are_hidden(worlds: tuple[World, World], tmp_path: Path) -> None:
    """As a version left them that loaded the months again, and knew of the ids already."""
    here, there = worlds
    forget(there)
    newer = save(there, tmp_path / "newer")
    restore_forgotten(here.dsn, here.forget_key, newer)
    with here.connect() as connection:
        connection.execute("update partitions set inputs = 'none' where asset = 'messages'")
    fill(here)
    assert left(here) > 0
    take_over(here, newer)
    assert (left(here), traces(here)) == (0, [])


def test_older_archive_loses_what_a_newer_one_has_lost(
    worlds: tuple[World, World], tmp_path: Path, cluster: Cluster
) -> None:
    _, there = worlds
    older = save(there, tmp_path / "older")
    forget(there, REQUEST._replace(cut=True))
    newer = save(there, tmp_path / "newer")
    with new_world(tmp_path / "third", cluster) as third:
        restore_backup({"mail": third.dsn}, third.store, third.forget_key, older)
        assert b"Tuesdays" in held(third)
        take_over(third, newer)
        assert b"Tuesdays" not in held(third)
        for month in (MARCH, APRIL):
            for step in ("messages", "words", "chunks", "embeddings", "vectors"):
                getattr(third, step)(month)
        assert {name for (name,) in third.rows("messages", "message_id")} == {
            "root@example.org", "b@example.org", "answer@example.org"
        }  # fmt: skip


def test_removal_cut_in_the_backup_is_cut_here(worlds: tuple[World, World], tmp_path: Path) -> None:
    here, there = worlds
    forget(here)
    forget(there, REQUEST._replace(cut=True))
    take_over(here, save(there, tmp_path / "newer"))
    assert b"Tuesdays" not in held(here)


def test_no_key_is_needed_without_removals(worlds: tuple[World, World]) -> None:
    here, _ = worlds
    with here.workspace() as workspace:
        report = forget_again(workspace, lambda name: here.index)
    assert not report.copies
    assert here.rows("forget_keys") == []
