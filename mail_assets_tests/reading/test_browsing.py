"""Descriptions of the tables, counts and stats."""

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.reading.browsing import Column, columns, full_name, read_stats, row_count
from mail_assets.steps.build_threads import build_threads
from mail_assets.tables.chunks import read_facts
from mail_assets.tables.indexes import IndexMonth, Manifest, mark_intended, mark_written
from mail_assets.tables.mbox_archives import ArchiveRow, write_archive
from mail_assets.tables.messages import QuarantineRow, replace_quarantine
from mail_assets.tables.partitions import Counts, Partition, State, write_state
from mail_assets_tests.tables.rows import MONTH, NEXT_MONTH, load, rechunk, stored

TABLES = ("mbox_archives", "messages", "threads", "chunks", "vectors")
INDEX, WORDS = "lance:x index", "lance:y words"
MAY = ListMonth("dev", "2024-05")


@pytest.fixture
def filled(migrated: psycopg.Connection) -> psycopg.Connection:
    """Two messages in a month of dev, one with a reply in the next; users has none."""
    reply = "In-Reply-To: <1@example.org>\n"
    months = {
        MONTH: [stored("1@example.org"), stored("2@example.org", "B.\n", "Zebras", ordinal=1)],
        NEXT_MONTH: [stored("3@example.org", "No.\n", "Re: Leases", headers=reply)],
    }
    for month, messages in months.items():
        archive = ArchiveRow("s", f"a/{month}", "a", 9, "v", 4, "c", "pg", "pg")
        write_archive(migrated, month, archive)
        load(migrated, messages, month)
        replace_quarantine(migrated, month, "1", [QuarantineRow(7, 0, 1, "bad")])
        rechunk(migrated, month)
        counts: Counts = {"stored": len(messages), "duplicates": 1}
        write_state(migrated, Partition("messages", month), State("i", "d", counts))
        for asset in ("chunks", "vectors"):
            state = State(f"d {INDEX}", "d", {"chunks": len(messages)})
            write_state(migrated, Partition(asset, month), state)
        part = IndexMonth(Manifest("vectors", INDEX), month)
        mark_intended(migrated, part, {fact.key: b"d" for fact in read_facts(migrated, month)})
        mark_written(migrated, part)
    part = IndexMonth(Manifest("words", WORDS), MONTH)
    mark_intended(migrated, part, {"one": b"d", "two": b"d"})
    mark_written(migrated, part)
    state = State(f"d {WORDS}", "d", {"documents": 2})
    write_state(migrated, Partition("words", MONTH), state)
    mark_intended(migrated, IndexMonth(Manifest("words", WORDS), MAY), {"unwritten": b"d"})
    build_threads(migrated, lambda line: None)
    mark_intended(migrated, IndexMonth(Manifest("vectors", INDEX), MAY), {"unwritten": b"d"})
    mark_intended(migrated, IndexMonth(Manifest("vectors", "other"), MONTH), {"elsewhere": b"d"})
    write_archive(migrated, MAY, ArchiveRow("s", None, "", 0, "", 0, "", "", ""))
    return migrated


def test_columns_are_in_order_with_types(migrated: psycopg.Connection) -> None:
    found = columns(migrated, "vectors")
    description = "URL of the bucket and name of the index."
    assert found[0] == Column("index_name", "text", False, description)
    assert found[-1][:3] == ("written", "boolean", False)
    threads = {column.name: column for column in columns(migrated, "threads")}
    assert threads["parent_id"].nullable
    migrated.execute("alter table threads drop column depth")
    assert "depth" not in {column.name for column in columns(migrated, "threads")}


@pytest.mark.parametrize("table", [*TABLES, "quarantine"])
def test_every_column_people_see_is_described(migrated: psycopg.Connection, table: str) -> None:
    assert [column.name for column in columns(migrated, table) if not column.description] == []


def test_every_table_and_column_has_a_comment(migrated: psycopg.Connection) -> None:
    tables = migrated.execute(
        "select relname, obj_description(oid) is not null from pg_class"
        " where relnamespace = 'public'::regnamespace and relkind = 'r'"
    ).fetchall()
    assert len(tables) > len(TABLES)
    assert [name for name, described in tables if not described] == []
    undescribed = [
        f"{table}.{column.name}"
        for table, _ in tables
        for column in columns(migrated, table)
        if not column.description
    ]
    assert undescribed == []


@pytest.mark.parametrize("table", TABLES)
def test_table_has_a_full_name(migrated: psycopg.Connection, table: str) -> None:
    assert full_name(migrated, table) == f"{migrated.info.dbname}.public.{table}"


@pytest.mark.parametrize(
    ("table", "rows"), [("mbox_archives", 3), ("messages", 3), ("chunks", 3), ("vectors", 3)]
)
def test_rows_are_counted(filled: psycopg.Connection, table: str, rows: int) -> None:
    assert row_count(filled, table) == rows


def test_stats_count_what_each_list_has(filled: psycopg.Connection) -> None:
    accounted = ("months", "found", "messages", "duplicates", "quarantined", "removed")
    none = dict.fromkeys((*accounted, "words", "chunks", "vectors"), 0)
    assert read_stats(filled, ["users", "dev"], INDEX, WORDS) == {
        "lists": {
            "dev": {
                "months": 2,
                "found": 8,
                "messages": 3,
                "duplicates": 2,
                "quarantined": 2,
                "removed": 0,
                "words": 2,
                "chunks": 3,
                "vectors": 3,
            },
            "users": none,
        },
        "threads": 2,
    }


def test_stats_count_the_named_indexes(filled: psycopg.Connection) -> None:
    of_others = read_stats(filled, ["dev"], "other", "other")["lists"]["dev"]
    assert (of_others["vectors"], of_others["words"]) == (0, 0)
    assert read_stats(filled, [], INDEX, WORDS)["lists"] == {}
