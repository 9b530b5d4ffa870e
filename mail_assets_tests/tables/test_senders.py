"""Triggers keep the senders of each month as messages are written and deleted."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from mail_assets.postgres.statements import statement
from mail_assets.search.field_conditions import HIDDEN
from mail_assets.tables.lists import EVERY_LIST, show_lists

MESSAGE: LiteralString = """
insert into messages (list, month, message_id, variant, content_hash, row_hash, sent_at,
       date_source, date_raw, subject, subject_base, from_name, from_email, reply_to, recipients,
       cc, in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers,
       flags, search)
select 'dev', month, message_id, 0, '', '', now(), 'date', '', '', '', name, address, '{}', '{}',
       '{}', '{}', '{}', '', 'plain', '', '[]', '[]', '{}', '{}', ''
  from (values ('2024-03', 'a', 'Ann', 'Ann@example.org'),
               ('2024-03', 'b', 'Bo', 'bo@example.org'),
               ('2024-03', 'c', 'BO', 'bo@example.org'),
               ('2024-04', 'd', 'Ann', 'ann@example.org')) m (month, message_id, name, address)
"""
MARCH_ANN = ("2024-03", "ann@example.org", "ann ann@example.org")
MARCH_BO = ("2024-03", "bo@example.org", "bo bo@example.org")
APRIL_ANN = ("2024-04", *MARCH_ANN[1:])


@pytest.fixture
def db(mail_dsn: str) -> Iterator[psycopg.Connection]:
    """A database in which Ann wrote in two months, and Bo twice in one."""
    with psycopg.connect(mail_dsn, autocommit=True) as connection:
        connection.execute(MESSAGE)
        show_lists(connection, EVERY_LIST)
        yield connection


@pytest.mark.parametrize(
    ("statement", "senders"),
    [
        ("select", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        ("delete from messages where message_id = 'a'", [MARCH_BO, APRIL_ANN]),
        ("delete from messages where message_id = 'b'", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        ("delete from messages where from_name ilike 'bo'", [MARCH_ANN, APRIL_ANN]),
        ("delete from messages", []),
        (
            "update messages set from_name = 'Eve' where message_id = 'd'",
            [MARCH_ANN, MARCH_BO, ("2024-04", "ann@example.org", "eve ann@example.org")],
        ),
        ("update messages set subject = 'x'", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        (
            "update messages set from_name = 'ANN' where message_id = 'a'",
            [MARCH_ANN, MARCH_BO, APRIL_ANN],
        ),
    ],
)
def test_senders_of_a_month_are_there_once(
    db: psycopg.Connection, statement: LiteralString, senders: list[tuple[str, str, str]]
) -> None:
    db.execute(statement)
    rows = db.execute("select list, month, address, person from senders order by month, person")
    assert rows.fetchall() == [("dev", *one) for one in senders]


#: Messages of a month that all change at once, each by another sender.
MANY = 200
ROWS_READ: LiteralString = """
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer from pg_stat_xact_user_tables
"""
MANY_MESSAGES: LiteralString = """
insert into messages
select list, '2024-05', message_id || i, variant, content_hash, row_hash, sent_at, date_source,
       date_raw, subject, subject_base, from_name || i, from_email, reply_to, recipients, cc,
       in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers, flags,
       search
  from messages cross join generate_series(1, %s) i where message_id = 'a'
"""


@pytest.mark.parametrize("statement", [
    "update messages set from_name = from_name || 'x'", "update messages set refs = array['x']",
    "update messages set subject = 'x'", "delete from messages",
])  # fmt: skip
def test_cost_grows_linearly_with_changed_messages(
    db: psycopg.Connection, statement: LiteralString
) -> None:
    db.execute("update messages set from_name = from_name || 'x', refs = array['y']")
    db.execute(MANY_MESSAGES, (MANY,))
    with db.transaction():
        db.execute(statement + " where month = '2024-05'")
        [(read,)] = db.execute(ROWS_READ).fetchall()
    assert MANY <= read < 20 * MANY


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Björn Müller", ["bjorn", "Björn", "BJO\u0308RN", "muller, bjorn", "Mu\u0308ller"]),
        ("Conan O’Brien", ["O'Brien", "o’brien", "conan o'brien"]),
        ("Conan O'Brien", ["O’Brien", "oʼbrien"]),
        ("Ｔｏｍ Lane", ["tom", "ｌａｎｅ"]),
        ("Łukasz Ørsted", ["lukasz", "orsted", "Łukasz"]),
        ("Алёна Й", ["алена", "алёна"]),
        ("백 영", ["백"]),
    ],
)
def test_person_is_found_in_any_spelling(
    db: psycopg.Connection, name: str, asked: list[str]
) -> None:
    db.execute("update messages set from_name = %s where message_id = 'a'", [name])
    for sender in asked:
        words = sender.replace(",", " ").split()
        values = {"sender": sender, "words": words, "longest": max(words, key=len), "most": 9}
        for query in ("senders", "senders_by_name"):
            found = db.execute(statement("search", query), {**values, **HIDDEN}).fetchall()
            assert found == [("ann@example.org",)], (sender, query)
