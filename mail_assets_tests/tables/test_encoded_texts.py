"""The chunks of candidates are read without reading their months."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.search.open import prepare_connection
from mail_assets.tables.encoded_texts import WantedChunks, read_candidate_chunks

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


def test_candidate_chunks_are_found_by_message(
    connection: psycopg.Connection,
) -> None:
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
