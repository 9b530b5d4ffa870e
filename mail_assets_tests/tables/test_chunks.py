"""Chunks: keys differ between partitions, only changed rows are written, candidates are found."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from mail_assets.month import ListMonth
from mail_assets.search.open import prepare_connection
from mail_assets.tables.checks import WrongSpans, count_months
from mail_assets.tables.chunks import (
    chunk_key,
    find_encoded,
    read_documents,
    read_facts,
    read_text_sizes,
)
from mail_assets.tables.encoded_texts import WantedChunks, read_candidate_chunks
from mail_assets.tables.partitions import Partition, State, write_state
from mail_assets_tests.tables.rows import MONTH, NEXT_MONTH, OTHER_LIST, load, rechunk, stored


def places(connection: psycopg.Connection) -> dict[str, str]:
    rows = connection.execute("select message_id || variant, ctid::text from chunks")
    return dict(rows.fetchall())


def test_keys_differ_by_place_content_and_position() -> None:
    keys = {
        chunk_key(MONTH, "1@example.org", "", 0),
        chunk_key(MONTH, "1@example.org", "", 1),
        chunk_key(MONTH, "1@example.org", "ab12", 0),
        chunk_key(MONTH, "1@example.org|ab12", "", 0),
        chunk_key(NEXT_MONTH, "1@example.org", "", 0),
        chunk_key(OTHER_LIST, "1@example.org", "", 0),
    }
    assert len(keys) == 6


def test_key_never_changes() -> None:
    # sha256("dev|2024-03|1@example.org"); another would orphan every vector
    key = chunk_key(MONTH, "1@example.org", "", 2)
    assert key == "b9641304b07481aca82ac4170358ed7f#2"


def test_keys_in_sql_are_those_of_chunks(migrated: psycopg.Connection) -> None:
    query = "select message_key('dev', '2024-03', '1@example.org', %s::smallint, 'ab12')"
    for variant, variant_hash in ((0, ""), (1, "ab12")):
        [(key,)] = migrated.execute(query, [variant]).fetchall()
        assert f"{key}#0" == chunk_key(MONTH, "1@example.org", variant_hash, 0)


def test_variant_that_moves_up_keeps_its_chunks_in_place(migrated: psycopg.Connection) -> None:
    """Its key carries the content's hash, and so stays; its number does not."""
    one = stored("1@example.org", "One.\n")
    two = stored("1@example.org", "Two.\n", variant=1, ordinal=1)
    three = stored("1@example.org", "Three.\n", variant=2, ordinal=2)
    load(migrated, [one, two, three])
    rechunk(migrated)
    load(migrated, [one, three._replace(variant=1)])
    rechunk(migrated)
    assert count_months(migrated, [MONTH], WrongSpans) == {MONTH: (0,)}
    assert len(read_facts(migrated, MONTH)) == 2
    found = migrated.execute("select variant, text from chunks order by variant").fetchall()
    assert [(variant, text.strip()) for variant, text in found] == [(0, "One."), (1, "Three.")]


def test_equal_texts_are_one_document(migrated: psycopg.Connection) -> None:
    load(
        migrated,
        [
            stored("1@example.org", "Same.\n", ordinal=0),
            stored("2@example.org", "Same.\n", subject="Re: Leases", ordinal=1),
            stored("3@example.org", "Same.\n", subject="Other", ordinal=2),
        ],
    )
    rechunk(migrated)
    hashes = [size.text_hash for size in read_text_sizes(migrated, MONTH)]
    documents = [*read_documents(migrated, MONTH, hashes)]
    assert [(d.subject, d.text.strip()) for d in sorted(documents, key=lambda d: d.subject)] == [
        ("Leases", "Same."),
        ("Other", "Same."),
    ]
    assert [d.text_hash for d in documents] == hashes == sorted({*hashes})
    assert [*read_documents(migrated, MONTH, hashes[1:])] == documents[1:]
    assert all(size.tokens > 0 for size in read_text_sizes(migrated, MONTH))
    assert len(read_facts(migrated, MONTH)) == 3


def test_text_is_found_in_one_other_encoded_month(migrated: psycopg.Connection) -> None:
    for month in [MONTH, NEXT_MONTH, OTHER_LIST]:
        load(migrated, [stored("1@example.org", "Same.\n")], month)
        rechunk(migrated, month)
    load(migrated, [stored("2@example.org", "Else.\n")], ListMonth("users", "2024-05"))
    rechunk(migrated, ListMonth("users", "2024-05"))
    hashes = {size.text_hash for size in read_text_sizes(migrated, MONTH)}
    assert find_encoded(migrated, MONTH, hashes, "mini") == {}
    for month, encoder in ((MONTH, "mini"), (NEXT_MONTH, "other"), (OTHER_LIST, "mini")):
        state = State(f"d encoder {encoder}", "d", {"texts": 1})
        write_state(migrated, Partition("embeddings", month), state)
    assert find_encoded(migrated, MONTH, hashes, "mini") == {OTHER_LIST: hashes}
    assert find_encoded(migrated, MONTH, hashes, "other") == {NEXT_MONTH: hashes}
    assert find_encoded(migrated, MONTH, [], "mini") == {}


def test_facts_come_from_message_and_chunk(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("1@example.org", subject="Re: [dev] Leases")])
    rechunk(migrated)
    (fact,) = read_facts(migrated, MONTH)
    assert fact.key == chunk_key(MONTH, "1@example.org", "", 0)
    assert fact[2:] == (0, "1@example.org", "jo@example.org", 1709287200, "Leases", "text")


@pytest.mark.parametrize(("column", "value"), [
    ("segments", '[[0, 2, "text"], [2, 9, "patch"]]'),
    ("attachments", '[{"name": "a.txt"}, {"name": "b.txt", "is_patch": true}]'),
])  # fmt: skip
def test_message_with_a_patch_is_of_that_kind(
    migrated: psycopg.Connection, column: str, value: str
) -> None:
    load(migrated, [stored("1@example.org"), stored("2@example.org", ordinal=1)])
    rechunk(migrated)
    query = sql.SQL("update messages set {} = %s where message_id = '2@example.org'")
    migrated.execute(query.format(sql.Identifier(column)), [value])
    kinds = {fact.message_id: fact.kind for fact in read_facts(migrated, MONTH)}
    assert kinds == {"1@example.org": "text", "2@example.org": "patch"}


MONTHS, MESSAGES, CHUNKS = 100, 50, 5

#: Rows as wide as those of mail, in no order: there the planner would rather find fewer of them.
FILL: LiteralString = """
insert into chunks (key, list, month, message_id, variant, index, text, spans, tokens, text_hash)
select m || '-' || n || '#' || i, 'harbor',
       to_char(date '2020-01-01' + m * interval '1 month', 'YYYY-MM'), m || '-' || n || '@x', 0, i,
       (select string_agg(md5(m || '-' || n || i || k), '') from generate_series(1, 40) k),
       '{0,9}', 3, sha256(convert_to(m || '-' || n || '-' || i, 'UTF8'))
  from generate_series(0, %s - 1) m, generate_series(1, %s) n, generate_series(0, %s - 1) i
 order by md5(m || '-' || n || '-' || i)"""

#: Entries of all indexes of chunks that this transaction read.
ENTRIES: LiteralString = """
select sum(pg_stat_get_xact_tuples_returned(indexrelid))
  from pg_index where indrelid = 'chunks'::regclass"""


@pytest.fixture
def connection(mail_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection as search has it, to months of many chunks that the planner knows of."""
    with psycopg.connect(mail_dsn, autocommit=True) as connection:
        connection.execute(FILL, [MONTHS, MESSAGES, CHUNKS])
        connection.execute("analyze chunks")
        prepare_connection(connection)
        yield connection


def test_candidate_chunks_are_found_by_message(connection: psycopg.Connection) -> None:
    wanted = [
        WantedChunks(ListMonth("harbor", "2021-02"), f"13-{number}@x", 0, first=2)
        for number in range(1, 21)
    ]
    with connection.transaction():
        found = read_candidate_chunks(connection, "model", wanted, ["13-7#4"])
        [(entries,)] = connection.execute(ENTRIES).fetchall()
    assert [one.key for one in found if one.place == 6] == ["13-7#0", "13-7#1", "13-7#4"]
    assert len(found) == 2 * len(wanted) + 1
    assert entries == CHUNKS * len(wanted)
