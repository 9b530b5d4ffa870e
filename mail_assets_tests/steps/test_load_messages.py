"""Loading an archive: every message is accounted for, and only differences are written."""

import itertools
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from mail_assets.forgetting.forget import ForgetRequest, forget_messages
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.month import ListMonth
from mail_assets.steps import load_messages as step
from mail_assets.steps import month_contents, read_month
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.month_contents import MAX_VARIANT, MessageOutcome, decide_outcomes
from mail_assets.steps.read_month import Facts
from mail_assets.tables.messages import delete_rows
from mail_assets.tables.removals import withdraw_removals
from mail_assets.workspace import ListDefaults
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import HARBOR, LATER, MARCH, MESSAGES, PIER, World, mail


def accounted(counts: dict[str, int | float]) -> bool:
    return counts["found"] == counts["stored"] + counts["duplicates"] + counts["quarantined"]


load = partial(World.load, last="archives")


def test_every_message_is_stored_duplicate_or_quarantined(world: World) -> None:
    load(world, mail("a"), mail("b"), mail("a"), mail("b", "Other words under the same id."))
    outcome = world.messages()
    assert accounted(outcome.counts)
    assert outcome.counts["found"] == 4
    assert outcome.counts["stored"] == 3
    assert outcome.counts["duplicates"] == 1
    assert outcome.counts["variants"] == 1
    assert outcome.counts["written"] == 3
    assert world.rows("archive_entries", "ordinal, outcome, message_id, variant") == [
        (0, "stored", "a@example.org", 0),
        (1, "stored", "b@example.org", 0),
        (2, "duplicate", "a@example.org", 0),
        (3, "stored", "b@example.org", 1),
    ]
    keys = world.rows("archive_entries", "message_id, variant", "outcome = 'stored'")
    assert world.rows("messages", "message_id, variant") == keys


def test_unreadable_message_is_quarantined_with_its_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails = [mail("a"), mail("b"), mail("c")]
    load(world, *mails)

    def refuse_b(raw: RawMessage, **rest: Any) -> Message:
        if b"<b@example.org>" in raw.raw:
            raise UnreadableMessageError("its header never ends")
        return parse_message(raw, **rest)

    monkeypatch.setattr(read_month, "parse_message", refuse_b)
    outcome = world.messages()
    assert accounted(outcome.counts)
    assert outcome.counts["quarantined"] == 1
    assert world.rows("quarantine", "ordinal, archive_offset, archive_length, reason") == [
        (1, len(mails[0]), len(mails[1].removesuffix(b"\n")), "its header never ends")
    ]


def test_quarantined_message_is_tried_by_the_next_parser(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"))

    def refuse(raw: RawMessage, **rest: Any) -> Message:
        raise UnreadableMessageError("its header never ends")

    with monkeypatch.context() as older:
        older.setattr(read_month, "parse_message", refuse)
        older.setattr(step, "MESSAGES_VERSION", "an older parser")
        assert world.messages().counts["quarantined"] == 2
        assert world.rows("quarantine", "parser_version") == [("an older parser",)] * 2
    counts = world.messages().counts
    assert accounted(counts)
    assert (counts["stored"], counts["quarantined"]) == (2, 0)
    assert world.rows("quarantine") == []
    assert len(world.rows("messages")) == 2


def test_message_at_every_limit_does_not_fail_its_month(world: World) -> None:
    """200,000 letters of four bytes and 500 long names do not fit in a full-text vector."""
    names = " ".join(f"{'𐐀' * 195}_{n:03}" for n in range(500))
    text = " ".join("𐐀" * 4 + str(n) for n in range(40_000))
    huge = mail("b", f"{names}\n{text}").replace(
        b"Subject:", b"Content-Type: text/plain; charset=utf-8\nSubject:"
    )
    load(world, mail("a"), huge, mail("c"))
    counts = world.messages().counts
    assert (counts["stored"], counts["quarantined"]) == (3, 0)
    assert [name for (name,) in world.rows("messages", "message_id")] == [
        "a@example.org",
        "b@example.org",
        "c@example.org",
    ]


def test_refused_row_is_quarantined_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_month, "find_identifiers", lambda text, _: ["x" * text.count("!")])
    mails = [mail("a", "Fine!"), mail("b", "!" * 3_000), mail("c", "Fine, too!")]
    load(world, *mails)
    counts = world.messages().counts
    assert accounted(counts)
    assert (counts["stored"], counts["quarantined"], counts["written"]) == (2, 1, 2)
    assert world.rows("quarantine", "ordinal, archive_offset, reason") == [
        (
            1,
            len(mails[0]),
            "PostgreSQL refuses it: word is too long (3000 bytes, max 2046 bytes) (54000)",
        )
    ]


@pytest.mark.parametrize("order", [1, -1], ids=["lossy first", "lossy last"])
def test_pipermail_copy_that_lost_no_letters_is_kept(world: World, order: int) -> None:
    copies = [mail("a", "Fran?ois says so."), mail("a", "François says so.")]
    world.dialect = "pipermail"
    load(world, *copies[::order], mail("b", "What?"), mail("b", "What??"))
    outcome = world.messages()
    assert accounted(outcome.counts)
    assert outcome.counts["duplicates"] == 1
    assert [body for _, _, body in world.rows("messages", "message_id, variant, body_text")] == [
        "François says so.\n",
        "What?\n",
        "What??\n",
    ]


def test_mark_of_the_splitter_is_a_flag_of_the_row(world: World) -> None:
    load(world, mail("a"), b"From b@example.org Fri Mar  1 10:00:00 2024\nSubject: a quote\n\nx\n")
    assert world.messages().counts["suspicious"] == 1
    rows = world.rows("messages", "message_id = 'a@example.org', 'suspicious' = any(flags)")
    assert rows == [(False, True), (True, False)]


def arriving(name: str, body: str = "") -> bytes:
    """Return a message with a From_ line of its own."""
    return mail(name, body, from_line=f"From {name}@example.org Mon Mar  4 09:00:00 2024")


@pytest.mark.parametrize(("mails", "written", "deleted", "same"), [
    ([arriving("a"), arriving("b"), arriving("c")], 1, 0, ["a", "b"]),
    ([arriving("a")], 0, 1, ["a"]),
    ([arriving("a"), arriving("b", "Edited.")], 1, 0, ["a"]),
    ([arriving("a"), arriving("c")], 1, 1, ["a"]),
], ids=["added", "removed", "edited", "another"])  # fmt: skip
def test_run_writes_only_the_difference(
    world: World, mails: list[bytes], written: int, deleted: int, same: list[str]
) -> None:
    load(world, arriving("a"), arriving("b"))
    first = world.messages()
    versions = "message_id, ctid::text, xmin::text"
    before = {name: mark for name, *mark in world.rows("messages", versions)}
    load(world, *mails, at=1)
    outcome = world.messages()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (written, deleted)
    assert outcome.changed
    assert outcome.digest != first.digest
    after = {name: mark for name, *mark in world.rows("messages", versions)}
    for name in same:
        assert after[f"{name}@example.org"] == before[f"{name}@example.org"]


def test_another_dialect_or_parser_reloads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, mail("a", ">From here on the text is quoted."))
    world.messages()
    world.dialect = "mboxrd"
    world.archives()
    assert world.messages().counts["written"] == 1
    assert "\nFrom here" in f"\n{world.rows('messages', 'body_text')[0][0]}"
    monkeypatch.setattr(step, "MESSAGES_VERSION", "another parser")
    counts = world.messages().counts
    assert (counts["parsed"], counts["written"]) == (1, 1)


def test_damaged_archive_leaves_the_month_as_it_was(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.messages()
    load(world, mail("a"), mail("c"), at=1)
    before = world.rows("messages")
    [(key,)] = world.rows("mbox_archives", "object_key")
    (world.home / "store" / key).write_bytes(b"\x1f\x8b\x08\x00 cut off")
    with pytest.raises(ArchiveError):
        world.messages()
    assert world.rows("messages") == before
    world.store.delete(key)
    world.archives()
    assert world.messages().counts["written"] == 1


def test_progress_has_rate_and_time_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PROGRESS", 0.0)
    load(world, mail("a"), mail("b"))
    world.messages()
    assert len(world.said) == 2
    assert world.said[0].startswith(f"{HARBOR} {MARCH}: 1 of 2 messages, ")
    assert world.said[-1].endswith(" 0 s left")


def test_another_charset_of_the_list_reads_its_mail_again(world: World) -> None:
    load(world, mail("a", "Ошибка").decode().encode("koi8-r"), mail("b"))
    world.messages()
    keys = world.rows("messages", "message_id, content_hash")
    with world.workspace() as workspace:
        again = load_messages(
            workspace, ListMonth(HARBOR, MARCH), ListDefaults("english", "koi8-r")
        )
    assert again.counts["parsed"] == again.counts["written"] == 2
    assert world.rows("messages", "body_text", "message_id = 'a@example.org'") == [("Ошибка\n",)]
    assert world.rows("messages", "message_id, content_hash") == keys


def test_loads_with_one_summary_both_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [mail(name * 2, references=f"<{name}@example.org>") for name in "ab"]
    for name in (HARBOR, PIER):
        load(world, mail("a"), mail("b"), *answers, list_name=name)
        world.messages(list_name=name)
    world.threads()
    assert world.summaries().counts["made"] == 2
    load(world, mail("a", "New words."), *answers, list_name=HARBOR, at=1)
    load(world, mail("b", "New words."), *answers, list_name=PIER, at=1)
    both_wrote, deletions = threading.Barrier(2, timeout=LONG), itertools.count()

    def delete(*arguments: Any) -> int:
        if next(deletions) < 2:  # each now has the summary that the other deletes next
            both_wrote.wait()
        return delete_rows(*arguments)

    monkeypatch.setattr(step, "delete_rows", delete)
    with ThreadPoolExecutor(2) as pool:
        for outcome in pool.map(world.messages, [MARCH, MARCH], [HARBOR, PIER]):
            assert (outcome.counts["written"], outcome.counts["deleted"]) == (1, 1)
    assert next(deletions) == 3, "PostgreSQL ends one of them"
    changed = "body_text = E'New words.\\n'"
    assert world.rows("messages", "list, message_id, body_text", changed) == [
        (HARBOR, "a@example.org", "New words.\n"),
        (PIER, "b@example.org", "New words.\n"),
    ]
    assert world.rows("thread_summaries") == []


DIGEST = b"""\
From list@example.org Mon Mar  4 10:00:00 2024
From: list@example.org
Date: Mon, 4 Mar 2024 10:00:00 +0000
Subject: harbor Digest
Message-ID: <digest@example.org>
Content-Type: multipart/digest; boundary=b

--b

From: Ann <ann@example.org>
Subject: Mooring

> an albatross was quoted
The walrus moored at noon.
--
Ann
--b--

"""


def test_name_of_an_attached_file_is_searched(world: World) -> None:
    head = 'Content-Type: application/pdf\nContent-Disposition: attachment; filename="Pier P2.pdf"'
    load(world, DIGEST.replace(b"\n--b--\n", f"\n--b\n{head}\n\n%PDF\n--b--\n".encode()))
    world.messages()
    for asked in ("'pier':*C <-> 'p2':C <-> 'pdf':C", "'p2.pdf'"):
        found = world.rows("messages", "message_id", f"search @@ $${asked}$$::tsquery")
        assert found == [("digest@example.org",)], asked


def test_text_of_an_attached_message_is_searched(world: World) -> None:
    load(world, DIGEST)
    world.messages()
    for word, is_found in (("walrus", True), ("mooring", True), ("albatross", False)):
        found = world.rows("messages", "message_id", f"search @@ to_tsquery('english', '{word}')")
        assert found == ([("digest@example.org",)] if is_found else []), word


def facts(content: str) -> Facts:
    return Facts("always@example.org", content, b"", None)


def test_variants_beyond_the_limit_are_quarantined() -> None:
    contents = [facts(str(number)) for number in range(MAX_VARIANT + 3)]
    outcomes = decide_outcomes([*contents, contents[0]], frozenset(), Forgotten())
    assert outcomes[MAX_VARIANT] == MessageOutcome("stored", MAX_VARIANT)
    assert {one.kind for one in outcomes[MAX_VARIANT + 1 : -1]} == {"quarantined"}
    assert (
        outcomes[-2].reason == "more than 32768 different messages of the month have its Message-ID"
    )
    assert outcomes[-1] == MessageOutcome("duplicate", 0)


def test_month_omits_variants_beyond_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(month_contents, "MAX_VARIANT", 1)
    world.archive("2024-03", *(mail("always", f"This is content {x}.") for x in "abca"))
    world.archives()
    counts = world.messages().counts
    assert (counts["found"], counts["stored"], counts["duplicates"]) == (4, 2, 1)
    assert [ordinal for ordinal, _ in world.rows("quarantine", "ordinal, reason")] == [2]
    assert world.rows("archive_entries", "ordinal, outcome, variant") == [
        (0, "stored", 0),
        (1, "stored", 1),
        (2, "quarantined", None),
        (3, "duplicate", 0),
    ]
    assert world.messages().counts["written"] == 0


FOOTER = "\n\nharbor mailing list, the place for leases\nhttps://lists.example.org/harbor\n"
TABLES = ("messages", "archive_entries", "quarantine", "removed_messages")


def holds(world: World) -> dict[str, list[tuple[Any, ...]]]:
    kept = "inputs, digest, counts - '{seconds,messages_per_second,written,deleted,parsed}'::text[]"
    return {
        **{table: world.rows(table) for table in TABLES if table != "messages"},
        "messages": world.rows("messages", MESSAGES),
        "partitions": world.rows("partitions", kept, "asset = 'messages'"),
    }


def load_counted(world: World, mails: Sequence[bytes], at: int) -> dict[str, int | float]:
    world.archive(MARCH, *mails, at=at)
    world.archives(allow_loss=True)
    return world.messages().counts


def load_afresh(world: World) -> dict[str, list[tuple[Any, ...]]]:
    with world.connect() as connection:
        for table in (*TABLES, "partitions"):
            connection.execute(f"delete from {table}".encode())
    world.archives()
    world.messages()
    return holds(world)


def variety() -> list[bytes]:
    """Mail for all outcomes: texts under one id, duplicates, lost letters, various dates."""
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
    for at in range(6):
        for _ in range(chance.randrange(1, 5)):
            mails = edit(chance, mails, stock)
        load_counted(world, mails, at)
    incremental = holds(world)
    assert load_afresh(world) == incremental


@pytest.mark.parametrize("senders", [(), ("author2@example.org",)], ids=["by id", "by sender"])
def test_forgetting_late_equals_forgetting_early(world: World, senders: tuple[str, ...]) -> None:
    mails = [*variety()[:14], *variety()[4:6]]
    load_counted(world, mails, 0)
    ids = () if senders else ("m5@example.org", "m1@example.org")
    with world.workspace() as workspace:
        request = ForgetRequest(ids, senders, "asked", "ann")
        forget_messages(workspace, request, lambda name: world.index)
    load_counted(world, [mail("top"), *mails], 1)
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
    calls = 0

    def counted(raw: RawMessage, **rest: Any) -> Message:
        nonlocal calls
        calls += 1
        return parse_message(raw, **rest)

    monkeypatch.setattr(read_month, "parse_message", counted)
    return lambda: calls


@pytest.mark.parametrize("place", [0, 20, 40], ids=["top", "middle", "bottom"])
def test_one_more_message_writes_one_row_and_parses_one(
    world: World, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    mails = [mail(f"m{n}") for n in range(40)]
    load_counted(world, mails, 0)
    rows = "message_id, ctid::text, xmin::text"
    before = world.rows("messages", rows)
    parsed = count_parsed(monkeypatch)
    mails.insert(place, mail("new"))
    counts = load_counted(world, mails, 1)
    assert (counts["written"], counts["deleted"], counts["parsed"], parsed()) == (1, 0, 1, 1)
    after = world.rows("messages", rows)
    assert [row for row in after if row[0] != "new@example.org"] == before
    offsets = world.rows("archive_entries", "ordinal, archive_offset")
    assert [offset for _, offset in sorted(offsets)] == [
        sum(map(len, mails[:n])) for n in range(len(mails))
    ]


def test_later_footer_marks_earlier_mail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five authors in five threads make a footer; before, it is text or a signature."""
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
    load_counted(world, mails[:4], 0)
    learnt = "segments @> '[[\"footer\"]]'"
    assert world.rows("messages", learnt) == [(False,)] * 4
    counts = load_counted(world, mails[:5], 1)
    assert world.rows("messages", learnt) == [(True,)] * 5
    assert counts["written"] == 5
    parsed = count_parsed(monkeypatch)
    assert load_counted(world, mails, 2)["written"] == 1
    assert parsed() == 1


def test_invented_from_line_changes_no_row(world: World) -> None:
    """Some servers invent the line at each download; it counts only if mail has no date."""
    mails = [mail("dated"), mail("undated", date="no date")]
    load_counted(world, mails, 0)
    more = [*mails, mail("more", from_line=LATER)]
    counts = load_counted(
        world, [one.replace(b"Mar  4 09:00:00", b"Mar  5 10:00:00") for one in more], 1
    )
    assert (counts["parsed"], counts["written"]) == (2, 2)
    sent = dict(world.rows("messages", "message_id, sent_at::text"))
    assert sent["undated@example.org"].startswith("2024-03-05")
    assert sent["dated@example.org"].startswith("2024-03-04")
