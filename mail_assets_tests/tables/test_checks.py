"""Figures of checks: faults are found, right months pass."""

import psycopg
import pytest

from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import statement
from mail_assets.tables import checks
from mail_assets.tables.checks import (
    MessageCounts,
    Tokens,
    Undated,
    Unthreaded,
    WrongSpans,
    chunk_keys,
    count_months,
    statement_name,
)
from mail_assets.tables.mbox_archives import ArchiveRow, write_archive
from mail_assets.tables.messages import QuarantineRow, replace_quarantine
from mail_assets.tables.partitions import Partition, State, write_state
from mail_assets.tables.removed_messages import RemovedMessage, record_removed
from mail_assets_tests.tables.rows import MONTH, NEXT_MONTH, OTHER_LIST, load, rechunk, stored

ARCHIVE = ArchiveRow("folder", "archives/dev/a", "a", 9, "v", 6, "c", "pg", "pg")


@pytest.fixture
def month(migrated: psycopg.Connection) -> psycopg.Connection:
    """A month of six found: two stored, two duplicates, one in quarantine, one removed."""
    write_archive(migrated, MONTH, ARCHIVE)
    load(migrated, [stored("1@example.org", "One, ünd two.\n"), stored("2@example.org", ordinal=1)])
    replace_quarantine(migrated, MONTH, "1", [QuarantineRow(4, 0, 9, "bad")])
    record_removed(migrated, MONTH, [RemovedMessage(5, b"r", b"m", "k")])
    counts: dict[str, int | float] = {"duplicates": 2, "suspicious": 1, "unpacked_bytes": 9}
    write_state(migrated, Partition("messages", MONTH), State("i", "d", counts))
    rechunk(migrated)
    load(migrated, [stored("9@example.org")], OTHER_LIST)
    rechunk(migrated, OTHER_LIST)
    return migrated


def test_columns_of_statements_have_the_names_of_figures(migrated: psycopg.Connection) -> None:
    for one in {one for one in vars(checks).values() if hasattr(one, "_fields")} - {ListMonth}:
        found = migrated.execute(statement("checks", statement_name(one)), columns_of([]))
        assert [column.name for column in found.description or ()][2:] == [*one._fields]


def test_month_never_fetched_counts_zero(migrated: psycopg.Connection) -> None:
    account = count_months(migrated, [MONTH], MessageCounts)[MONTH]
    assert account == MessageCounts(0, 0, False, 0, 0, 0, 0, 0)
    assert account.balanced
    assert not account.empty


def test_right_account_is_balanced(month: psycopg.Connection) -> None:
    account = count_months(month, [MONTH], MessageCounts)[MONTH]
    assert account == MessageCounts(6, 9, True, 2, 2, 1, 1, 1)
    assert account.balanced
    assert not account.empty


@pytest.mark.parametrize("wrong", [
    "delete from messages where message_id = '1@example.org'", "delete from quarantine",
    "delete from removed_messages", "update partitions set counts = '{}'", "delete from partitions",
    "update mbox_archives set found = 7",
])  # fmt: skip
def test_wrong_account_is_found(month: psycopg.Connection, wrong: str) -> None:
    month.execute(wrong.encode())
    assert not count_months(month, [MONTH], MessageCounts)[MONTH].balanced


def test_archive_with_bytes_and_no_message_is_found(month: psycopg.Connection) -> None:
    month.execute("update mbox_archives set found = 0")
    assert count_months(month, [MONTH], MessageCounts)[MONTH].empty
    month.execute("update partitions set counts = counts || '{\"unpacked_bytes\": 0}'")
    assert not count_months(month, [MONTH], MessageCounts)[MONTH].empty


def test_undated_messages_are_counted(month: psycopg.Connection) -> None:
    assert count_months(month, [MONTH], Undated)[MONTH] == (0, 2)
    month.execute("update messages set date_source = 'received' where message_id like '1%'")
    assert count_months(month, [MONTH], Undated)[MONTH] == (1, 2)
    assert count_months(month, [NEXT_MONTH], Undated)[NEXT_MONTH] == (0, 0)


@pytest.mark.parametrize(("subject", "headers", "orphan"), [
    ("Re: Leases", "", True),
    ("[dev] RE: Leases", "", True),
    ("[dev] [v2] Aw: Leases", "", True),
    ("re[2]: Leases", "", True),
    ("Re: Leases", "In-Reply-To: <0@example.org>\n", False),
    ("Re: Leases", "References: <0@example.org>\n", False),
    ("Reading: a list", "", False),
    ("Leases, re: workers", "", False),
])  # fmt: skip
def test_replies_that_refer_to_nothing_are_counted(
    migrated: psycopg.Connection, subject: str, headers: str, orphan: bool
) -> None:
    load(migrated, [stored("1@example.org", subject=subject, headers=headers)])
    assert count_months(migrated, [MONTH], Unthreaded)[MONTH] == (int(orphan), 1, 1)


def test_messages_that_threads_do_not_know_are_counted(month: psycopg.Connection) -> None:
    months = [MONTH, NEXT_MONTH, OTHER_LIST]
    before = count_months(month, months, Unthreaded)
    assert all(one.not_in_threads == one.messages for one in before.values())
    month.execute(
        "insert into threads select message_id, message_id, null, null, message_id, 0, 0, false"
        " from messages where list = %s",
        (MONTH.list_name,),
    )
    after = count_months(month, months, Unthreaded)
    assert [before[m].messages for m in months] == [after[m].messages for m in months]
    assert {m.list_name: after[m].not_in_threads for m in months if before[m].messages} == {
        MONTH.list_name: 0,
        OTHER_LIST.list_name: 1,
    }


@pytest.mark.parametrize("wrong", [
    "update chunks set spans = '{0,3}'", "update chunks set spans = '{1,14}'",
    "update chunks set spans = '{0,15}'", "update chunks set spans = '{-1,14}'",
    "update chunks set spans = '{5,2}'", "update chunks set spans = '{0,5,9,5,5,14}'",
    "update chunks set spans = '{0,5,9,14}'", "update chunks set spans = '{0,14,3}'",
    "update chunks set spans = '{0,14,14,15}'", "update chunks set spans = '{0,14,20,21}'",
    "update chunks set spans = '{0}'", "update chunks set spans = '{}'",
    "update chunks set text = 'One, und two.'", "update chunks set text = ''",
    "update chunks set variant = 1", "update messages set body_text = 'Other.'",
    "delete from messages",
])  # fmt: skip
def test_chunk_that_differs_from_its_spans_is_found(month: psycopg.Connection, wrong: str) -> None:
    length = "select length(body_text) from messages where message_id = '1@example.org'"
    assert month.execute(length).fetchone() == (14,)
    month.execute(f"{wrong} where message_id = '1@example.org'".encode())
    assert count_months(month, [MONTH], WrongSpans)[MONTH].wrong == 1
    assert count_months(month, [OTHER_LIST], WrongSpans)[OTHER_LIST].wrong == 0


def test_several_spans_are_one_text(month: psycopg.Connection) -> None:
    month.execute(
        "update chunks set spans = '{0,3,5,8}', text = 'Oneünd' where message_id like '1%'"
    )
    assert count_months(month, [MONTH], WrongSpans)[MONTH].wrong == 0


def test_many_months_are_asked_for_at_once(month: psycopg.Connection) -> None:
    months = [OTHER_LIST, NEXT_MONTH, MONTH]
    stored = {m: counts.stored for m, counts in count_months(month, months, MessageCounts).items()}
    assert stored == {OTHER_LIST: 1, NEXT_MONTH: 0, MONTH: 2}
    assert [*count_months(month, months, Undated).values()] == [(0, 1), (0, 0), (0, 2)]
    assert [tokens.chunks for tokens in count_months(month, months, Tokens).values()] == [1, 0, 2]
    month.execute("update chunks set text = 'x' where list = 'dev'")
    assert [*count_months(month, months, WrongSpans).values()] == [(0,), (0,), (2,)]
    assert count_months(month, [], MessageCounts) == {}


def test_tokens_are_those_of_the_month(month: psycopg.Connection) -> None:
    assert count_months(month, [MONTH], Tokens)[MONTH] == (3, 4.0, 5, 2)
    assert count_months(month, [NEXT_MONTH], Tokens)[NEXT_MONTH] == (0, 0.0, 0, 0)


def test_chunk_keys_are_those_of_the_month(month: psycopg.Connection) -> None:
    rows = month.execute("select key from chunks where list = 'dev'").fetchall()
    assert chunk_keys(month, MONTH) == {key for (key,) in rows}
    assert len(rows) == 2
