"""Archives without forgotten messages: other bytes stay, and no fetch brings them back."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pytest
import zstandard

from mail_assets.forgetting.forget import (
    ForgetRequest,
    cut_archives,
    find_archives_holding,
    forget_messages,
)
from mail_assets.indexes.vectors import open_known_index
from mail_assets.mail.archive.compression import open_archive
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.reading.attachments import read_raw_message
from mail_assets.reading.browsing import show_message
from mail_assets.tables.checks import MessageCounts, count_months
from mail_assets.tables.removals import withdraw_removals
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, Killed, World, mail

HERE, NEXT = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)
EVE = "eve@example.net"
SECRET = mail("secret", "The harbour master sleeps.")
HERS = mail("hers", "Tides.", sender=EVE)
ANSWER = mail("answer", references="<secret@example.org> <hers@example.org>")
REQUEST = ForgetRequest(["secret@example.org"], [EVE], "asked to", "the postmaster", cut=True)


def fill_world(made: World) -> None:
    made.archive(MARCH, mail("a"), SECRET, mail("b"), HERS, SECRET)
    made.archive(APRIL, ANSWER)
    made.fill(MARCH, APRIL)


world = kept_world(fill_world)


def forget(world: World, request: ForgetRequest = REQUEST) -> tuple[int, dict[str, str]]:
    return world.cut(world.forget(request))


def holding(world: World, request: ForgetRequest = REQUEST) -> list[str]:
    with world.workspace() as workspace:
        return find_archives_holding(workspace, request.removals(DIGESTS))


def stored(world: World, month: str = MARCH) -> list[bytes]:
    """Return the uncompressed bytes of all files of a month's archive."""
    found = []
    for key in [*world.store.keys(f"archives/{HARBOR}/{month}/")]:
        with world.store.fetch(key) as path, open_archive(path) as file:
            found.append(file.read())
    return found


def balanced(world: World) -> bool:
    with world.connect() as connection:
        counts = count_months(connection, [HERE, NEXT], MessageCounts)
    return all(one.balanced and not one.empty for one in counts.values())


def raw(world: World, message_id: str) -> bytes:
    """Return what `show --raw` prints."""
    with world.workspace() as workspace:
        [row] = show_message(workspace.connection, message_id)
        month = ListMonth(row["list"], row["month"])
        place = (row["archive_offset"], row["archive_length"])
        return read_raw_message(workspace.connection, workspace.store, month, *place)


def test_stored_archive_loses_the_message_and_nothing_else(world: World) -> None:
    assert forget(world) == (1, {})
    assert stored(world) == [mail("a") + mail("b")]
    assert holding(world) == []
    assert balanced(world)
    assert raw(world, "b@example.org") == mail("b").rstrip(b"\n") + b"\n"
    assert forget(world) == (0, {})


def test_no_fetch_brings_a_cut_message_back(world: World) -> None:
    forget(world)
    before = world.file_times()
    again = world.chain(MARCH)
    assert not again["archives"].changed
    assert world.file_times() == before
    world.archive(MARCH, mail("a"), SECRET, mail("b"), HERS, SECRET, at=1)  # the same, touched
    assert not world.chain(MARCH)["archives"].changed
    world.archive(MARCH, mail("a"), HERS, SECRET, mail("b"), mail("c"), at=2)
    assert world.chain(MARCH)["archives"].changed
    world.archives()  # sweeps the file that messages were read from until then
    assert stored(world) == [mail("a") + mail("b") + mail("c")]
    assert balanced(world)


def test_later_mail_of_a_forgotten_sender_is_never_stored(world: World) -> None:
    forget(world)
    late = mail("late", "More tides.", sender=EVE)
    world.archive(APRIL, ANSWER, mail("r", references="<late@example.org>"), late, at=1)
    world.fill(APRIL)
    assert not [data for data in stored(world, APRIL) if b"More tides" in data]
    ids = world.rows("messages", "refs", "message_id = 'r@example.org'")
    assert "late@example.org" not in repr(ids)
    assert "late@example.org" not in repr(world.rows("threads"))
    assert balanced(world)


def test_answers_name_a_cut_message_by_its_placeholder(world: World) -> None:
    forget(world)
    refs = world.rows("messages", "refs", "message_id = 'answer@example.org'")
    threads = world.rows("threads")
    world.load(ANSWER, mail("new"), at=1, month=APRIL, last="vectors")
    assert world.rows("messages", "refs", "message_id = 'answer@example.org'") == refs
    world.threads()
    assert [row for row in world.rows("threads") if row[0] != "new@example.org"] == threads


def test_remembered_message_is_fetched_again(world: World) -> None:
    rows = world.rows("messages", "list, month, message_id, body_text, refs")
    forget(world)
    digests = [DIGESTS.of_message("secret@example.org"), DIGESTS.of_sender(EVE)]
    with world.connect() as connection:
        count, months = withdraw_removals(connection, digests)
    assert (count, months) == (2, [HERE, NEXT])
    for month in (MARCH, APRIL):
        world.chain(month)
    assert world.rows("messages", "list, month, message_id, body_text, refs") == rows
    world.archives()
    assert stored(world) == [mail("a") + SECRET + mail("b") + HERS + SECRET]


def test_archive_that_still_holds_it_is_named(world: World) -> None:
    keep = REQUEST._replace(cut=False)
    assert forget(world, keep) == (0, {})
    [(key,)] = world.rows("mbox_archives", "object_key", f"month = '{MARCH}'")
    assert holding(world, keep) == [world.store.url(key)]
    assert len(stored(world)) == 1
    assert forget(world) == (1, {})
    assert holding(world) == []


def test_kill_before_the_load_is_finished_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("mail_assets.forgetting.forget.load_messages", kill)
    with pytest.raises(Killed):
        forget(world)
    monkeypatch.undo()
    assert holding(world)
    assert raw(world, "b@example.org").startswith(b"From ")
    assert forget(world)[1] == {}
    assert stored(world) == [mail("a") + mail("b")]
    assert balanced(world)


def test_month_of_nothing_else_is_an_empty_archive(world: World) -> None:
    world.archive(APRIL, HERS, at=1)
    world.archives(APRIL, allow_loss=True)
    world.chain(APRIL)
    forget(world)
    assert stored(world, APRIL) == [b""]
    assert world.rows("messages", where=f"month = '{APRIL}'") == []
    assert balanced(world)


def test_damaged_archive_is_named_and_others_are_cut(world: World) -> None:
    world.load(ANSWER, HERS, at=1, month=APRIL, last="vectors")
    [key] = world.store.keys(f"archives/{HARBOR}/{MARCH}/")
    (world.home / "store" / key).write_bytes(b"no mail at all")
    cut, failed = forget(world)
    assert cut == 1
    assert [*failed] == [HERE.key]
    assert failed[HERE.key].startswith(f"{HERE}: ")
    assert "not an mbox" in failed[HERE.key]
    assert not [data for data in stored(world, APRIL) if b"Tides." in data]


def test_list_that_is_no_longer_configured_is_named(world: World) -> None:
    database = Database(world.home, world.dsn)
    with world.workspace() as workspace:
        report = forget_messages(workspace, REQUEST, lambda name: open_known_index(database, name))
        cut, failed = cut_archives(workspace, report.uncut, {})
    assert cut == 0
    assert "not in lists.toml" in failed[HERE.key]
    assert holding(world)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_archive_stays_compressed_as_it_was(world: World, suffix: str) -> None:
    plain = world.archive(MARCH, mail("a"), SECRET, mail("b"))
    plain.with_name(f"{plain.name}{suffix}").write_bytes(PACKED[suffix](plain.read_bytes()))
    plain.unlink()
    world.archives(MARCH, allow_loss=True)
    world.chain(MARCH)
    forget(world)
    [key] = world.store.keys(f"archives/{HARBOR}/{MARCH}/")
    assert key.endswith(f".mbox{suffix}")
    assert stored(world) == [mail("a") + mail("b")]


@pytest.mark.parametrize("vanishes", [False, True], ids=["shrinks", "vanishes"])
def test_former_archive_alone_is_cut_once(world: World, vanishes: bool) -> None:
    world.keep_days = 30
    path = world.archive(MARCH, mail("a"), mail("b"), at=2)
    if vanishes:
        path.unlink()
    world.archives(MARCH, allow_loss=True)
    world.chain(MARCH)
    report = world.forget(REQUEST)
    assert world.cut(report) == (1, {})
    assert holding(world) == []
    assert world.cut(report) == (0, {})


def test_former_archives_are_named_and_rewritten_too(world: World) -> None:
    world.keep_days = 30
    lost = mail("lost", "Only the former archive has this.")
    world.load(mail("a"), SECRET, mail("b"), HERS, SECRET, lost, at=1, last="vectors")
    world.archive(MARCH, mail("a"), SECRET, mail("b"), HERS, SECRET, at=2)
    world.archives(MARCH, allow_loss=True)
    world.chain(MARCH)
    former = {key for (key,) in world.rows("former_archives", "object_key")}
    forget(world, REQUEST._replace(cut=False))
    assert {world.store.url(key) for key in former} < {*holding(world)}
    assert forget(world) == (1, {})
    kept = {key for (key,) in world.rows("former_archives", "object_key")}
    assert len(kept) == len(former)
    assert not kept & former
    assert kept < {*world.store.keys(f"archives/{HARBOR}/{MARCH}/")}
    found = stored(world)
    assert mail("a") + mail("b") + lost in found
    assert not [data for data in found if b"harbour master" in data or b"Tides." in data]
    assert {key for (key,) in world.rows("removed_upstream", "former_key")} <= kept
