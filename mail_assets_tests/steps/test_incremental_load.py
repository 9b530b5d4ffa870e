"""A load after changes gives the rows of a first load, and costs only the changes."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mail_assets.forgetting.forget import ForgetRequest, forget_messages
from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets.steps import read_month
from mail_assets.tables.removals import withdraw_removals
from mail_assets_tests.world import LATER, MARCH, MESSAGES, World, mail

FOOTER = "\n\nharbor mailing list, the place for leases\nhttps://lists.example.org/harbor\n"
TABLES = ("messages", "archive_entries", "quarantine", "removed_messages")


def holds(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that loads have made, and what the month says of itself."""
    kept = "inputs, digest, counts - '{seconds,messages_per_second,written,deleted,parsed}'::text[]"
    return {
        **{table: world.rows(table) for table in TABLES if table != "messages"},
        "messages": world.rows("messages", MESSAGES),
        "partitions": world.rows("partitions", kept, "asset = 'messages'"),
    }


def load(world: World, mails: Sequence[bytes], at: int) -> dict[str, int | float]:
    world.archive(MARCH, *mails, at=at)
    world.archives(allow_loss=True)
    return world.messages().counts


def load_afresh(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a load holds that knows of no earlier one."""
    with world.connect() as connection:
        for table in (*TABLES, "partitions"):
            connection.execute(f"delete from {table}".encode())
    world.archives()
    world.messages()
    return holds(world)


def variety() -> list[bytes]:
    """Mail of all outcomes: contents under one id, duplicates, lost letters, various dates."""
    mails = [
        mail(
            f"m{n}",
            f"{'Of leases and more ' * n}this is said.{FOOTER if n % 3 else ''}",
            sender=f"author{n % 6}@example.org",
            references=f"<m{n - 3}@example.org>" if n > 3 else "",
        )
        for n in range(14)
    ]
    twice = mail("m1", "Another content under this id.", headers="X-Relay: one")
    relayed = mail("m1", "Another content under this id.", headers="X-Relay: another")
    undated = mail("m2", "Without a date.", date="no date")
    moved = undated.replace(b"Mar  4", b"Mar  5")
    letters = [mail("l", f"Fran{c}ois") for c in "?çé"]
    nothing = b"From ann@example.org Mon Mar  4 09:00:00 2024\nSubject:\n\n"
    return [*mails, twice, relayed, undated, moved, *letters, nothing]


def edit(chance: random.Random, mails: list[bytes], stock: Sequence[bytes]) -> list[bytes]:
    """Insert, delete, duplicate or move one message, or shuffle all."""
    mails = [*mails]
    kind = chance.choice(["insert", "insert", "delete", "move", "shuffle", "top"])
    at = chance.randrange(len(mails) + 1)
    if kind == "shuffle":
        chance.shuffle(mails)
    elif kind in ("insert", "top") or not mails:
        mails.insert(0 if kind == "top" else at, chance.choice(stock))
    else:
        gone = mails.pop(at - 1)
        if kind == "move":
            mails.insert(chance.randrange(len(mails) + 1), gone)
    return mails


@pytest.mark.parametrize("dialect", ["plain", "pipermail"])
@pytest.mark.parametrize("seed", range(4))
def test_edits_give_the_rows_of_a_first_load(world: World, seed: int, dialect: str) -> None:
    chance = random.Random(seed)
    world.dialect = dialect
    stock = variety()
    mails = chance.sample(stock, 10)
    for step in range(6):
        for _ in range(chance.randrange(1, 5)):
            mails = edit(chance, mails, stock)
        load(world, mails, step)
    incremental = holds(world)
    assert load_afresh(world) == incremental


@pytest.mark.parametrize("senders", [(), ("author2@example.org",)], ids=["by id", "by sender"])
def test_forgetting_between_loads_equals_forgetting_before(
    world: World, senders: tuple[str, ...]
) -> None:
    mails = [*variety()[:14], *variety()[4:6]]
    load(world, mails, 0)
    ids = () if senders else ("m5@example.org", "m1@example.org")
    with world.workspace() as workspace:
        request = ForgetRequest(ids, senders, "asked", "ann")
        forget_messages(workspace, request, lambda name: world.index)
    load(world, [mail("top"), *mails], 1)
    incremental = holds(world)
    gone = ids or ("m2@example.org", "m8@example.org")
    assert not any(x in repr([*incremental.values()]) for x in gone)
    removals = world.rows("removals")
    assert load_afresh(world) == incremental
    assert world.rows("removals") == removals
    with world.connect() as connection:
        withdraw_removals(connection, [digest for digest, *_ in removals])
    world.messages()
    incremental = holds(world)
    assert load_afresh(world) == incremental
    assert "invalid" not in repr(incremental["messages"])


def count_parsed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the messages that are parsed from now on."""
    calls = 0

    def counted(raw: RawMessage, **rest: Any) -> Message:
        nonlocal calls
        calls += 1
        return parse_message(raw, **rest)

    monkeypatch.setattr(read_month, "parse_message", counted)
    return lambda: calls


@pytest.mark.parametrize("place", [0, 20, 40], ids=["top", "middle", "bottom"])
def test_one_more_message_costs_one_row_and_one_parse(
    world: World, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    mails = [mail(f"m{n}") for n in range(40)]
    load(world, mails, 0)
    rows = "message_id, ctid::text, xmin::text"
    before = world.rows("messages", rows)
    parsed = count_parsed(monkeypatch)
    mails.insert(place, mail("new"))
    counts = load(world, mails, 1)
    assert (counts["written"], counts["deleted"], counts["parsed"], parsed()) == (1, 0, 1, 1)
    after = world.rows("messages", rows)
    assert [row for row in after if row[0] != "new@example.org"] == before
    offsets = world.rows("archive_entries", "ordinal, archive_offset")
    assert [offset for _, offset in sorted(offsets)] == [
        sum(map(len, mails[:n])) for n in range(len(mails))
    ]


def test_footer_learnt_later_marks_earlier_mail(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five authors in five threads make a footer; until then it is text, or a signature."""
    words = ["leases", "workers", "clocks", "queues", "locks", "heads"]
    mails = [
        mail(
            word,
            f"This is said here.\nIt is of {word}.{FOOTER}",
            sender=f"{word}@example.org",
            date=f"Mon, {4 + n % 2:02} Mar 2024 09:00:00 +0000",
        )
        for n, word in enumerate(words)
    ]
    load(world, mails[:4], 0)
    learnt = "segments @> '[[\"footer\"]]'"
    assert world.rows("messages", learnt) == [(False,)] * 4
    counts = load(world, mails[:5], 1)
    assert world.rows("messages", learnt) == [(True,)] * 5
    assert counts["written"] == 5
    parsed = count_parsed(monkeypatch)
    assert load(world, mails, 2)["written"] == 1
    assert parsed() == 1


def test_invented_from_line_changes_nothing(world: World) -> None:
    """Some servers make up the line at each download; where it gives the date it counts."""
    mails = [mail("dated"), mail("undated", date="no date")]
    load(world, mails, 0)
    more = [*mails, mail("more", from_line=LATER)]
    counts = load(world, [one.replace(b"Mar  4 09:00:00", b"Mar  5 10:00:00") for one in more], 1)
    assert (counts["parsed"], counts["written"]) == (2, 2)
    sent = dict(world.rows("messages", "message_id, sent_at::text"))
    assert sent["undated@example.org"].startswith("2024-03-05")
    assert sent["dated@example.org"].startswith("2024-03-04")


def test_load_by_another_version_parses_everything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mail_assets.steps import load_messages as step

    mails = [mail("a"), mail("b")]
    load(world, mails, 0)
    monkeypatch.setattr(step, "MESSAGES_VERSION", "a later parser")
    counts = world.messages().counts
    assert (counts["parsed"], counts["written"]) == (2, 2)
