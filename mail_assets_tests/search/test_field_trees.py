"""Random fields with and, or and not find what a scan finds, in PostgreSQL and in both indexes."""

import datetime as dt
import random
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from mail_assets.month import month_number
from mail_assets.postgres.statements import statement
from mail_assets.search.field_conditions import VECTOR_FIELDS
from mail_assets.search.filters import compile_filters
from mail_assets.search.language.request import Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.vectors.filters import matches_filter
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.search.queries import read_query

QUERIES = 300
#: "of the lease" in words that have its stem.
OF_THE_LEASE = re.compile(r"\bof\W+the\W+leas(?:e[sd]?|ing)\b", re.IGNORECASE)
Row = dict[str, Any]
#: What a person types, and what it means.
Tree = tuple[str, Callable[[Row], bool]]


@pytest.fixture(scope="module")
def rows(connection: psycopg.Connection) -> list[Row]:
    found = connection.execute(
        "select m.message_id, m.list, m.month, m.sent_at, m.from_name, lower(m.from_email),"
        " m.recipients || m.cc, m.subject, t.thread_id, m.segments, m.attachments,"
        " m.in_reply_to || m.refs, m.search @@ 'leas' as lease,"
        " m.search @@ 'job <-> queue' as phrase, m.search @@ 'harb:*' as prefix, m.body_text"
        " from messages m join threads t using (message_id)"
    )
    names = ("id", "list", "month", "sent_at", "name", "sender", "receivers", "subject", "thread")
    more = ("segments", "attachments", "parents", "lease", "phrase", "prefix", "body")
    return [dict(zip((*names, *more), row, strict=True)) for row in found]


def flags(row: Row) -> list[str]:
    is_patch = any(s[2] == "patch" for s in row["segments"]) or any(
        one["is_patch"] for one in row["attachments"]
    )
    has = [("patch", is_patch), ("attachment", bool(row["attachments"]))]
    return [name for name, value in has if value] + ["reply" if row["parents"] else "first"]


def own_text(row: Row) -> str:
    parts = [row["body"][start:end] for start, end, kind in row["segments"] if kind == "text"]
    return f"{row['subject']}\n{''.join(parts)}"


def day(row: Row) -> dt.date:
    sent_at: dt.datetime = row["sent_at"]
    return sent_at.astimezone(dt.UTC).date()


def leaf(rows: list[Row], chance: random.Random) -> Tree:
    """A field with the value of some row, or a text."""
    row = chance.choice(rows)
    name, when = row["name"][:5].lower(), day(row)
    subject, kind = row["subject"][:6].strip().lower(), chance.choice(flags(row))
    receiver = chance.choice([*row["receivers"], "lists"])[2:9].lower()
    month_start, year = when.replace(day=1), when.year
    next_month = (month_start + dt.timedelta(31)).replace(day=1)
    choices: list[Tree] = [
        (f"list:{row['list']}", lambda r: r["list"] == row["list"]),
        (f"month:{row['month']}", lambda r: r["month"] == row["month"]),
        (f"from:{row['sender']}", lambda r: r["sender"] == row["sender"]),
        (
            f'from:"{name}"',
            lambda r: all(one in f"{r['name']} {r['sender']}".lower() for one in name.split()),
        ),
        ("from:nobody@nowhere.example", lambda r: False),
        (f'to:"{receiver}"', lambda r: any(receiver in one.lower() for one in r["receivers"])),
        (f'subject:"{subject}"', lambda r: subject in r["subject"].lower()),
        (f"thread:{row['id']}", lambda r: r["thread"] == row["thread"]),
        ("thread:none@nowhere.example", lambda r: False),
        (f"id:{row['id']}", lambda r: r["id"] == row["id"]),
        (f"kind:{kind}", lambda r: kind in flags(r)),
        (f"after:{when}", lambda r: day(r) >= when),
        (f"before:{when}", lambda r: day(r) < when),
        (f"date:{when:%Y-%m}", lambda r: month_start <= day(r) < next_month),
        (f"date:..{year}", lambda r: day(r).year <= year),
        ('"lease"', lambda r: r["lease"]),
        ('"job queue"', lambda r: r["phrase"]),
        ('"of the leases"', lambda r: bool(OF_THE_LEASE.search(own_text(r)))),
        ("harb*", lambda r: r["prefix"]),
    ]
    return chance.choice(choices)


def tree(rows: list[Row], chance: random.Random, depth: int = 3) -> Tree:
    """A leaf, or some trees together."""
    if depth == 0 or chance.random() < 0.3:
        text, means = leaf(rows, chance)
    else:
        parts = [tree(rows, chance, depth - 1) for _ in range(chance.choice([1, 2, 2, 3]))]
        of_all = [means for _, means in parts]
        if chance.random() < 0.5:
            # each in parentheses: the same field twice would be an alternative
            text = f"({' '.join(f'({text})' for text, _ in parts)})"
            means = lambda row: all(one(row) for one in of_all)  # noqa: E731
        else:
            text = f"({' OR '.join(text for text, _ in parts)})"
            means = lambda row: any(one(row) for one in of_all)  # noqa: E731
    if chance.random() < 0.25:
        return f"-{text}", lambda row: not means(row)
    return text, means


def vector_metadata(row: Row) -> dict[str, Any]:
    kept = VECTOR_FIELDS.texts
    return {
        "list": row["list"],
        "month": month_number(row["month"]),
        "sent_at": int(row["sent_at"].timestamp()),
        "sender": row["sender"][: kept["sender"]],
        "message_id": row["id"][: kept["message_id"]],
        "kind": "patch" if "patch" in flags(row) else "text",
    }


def test_any_tree_of_fields_finds_what_a_scan_finds(
    connection: psycopg.Connection, corpus: Corpus, rows: list[Row]
) -> None:
    chance, matched = random.Random("trees"), 0
    languages = corpus.settings.languages
    for _ in range(QUERIES):
        query, means = tree(rows, chance)
        expected = {row["id"] for row in rows if means(row)}
        try:
            parsed = parse_request(Request(query))
        except RequestError:  # a period without a day
            assert expected == set(), query
            continue
        filters = compile_filters(connection, parsed.clauses, languages)
        if filters is None:
            assert expected == set(), query
            continue
        required = filters.require_words(read_query(connection, parsed, languages, filters.lists))
        found = connection.execute(
            required.find_by_index().statement("passing"),
            {**required.parameters, "most": 10_000, "spread": 1, "least": 1, "many": 1_000_000},
        ).fetchall()
        assert {one for one, passes, _ in found if passes} == expected, query
        matched += bool(expected)
        for row in rows:
            word_metadata = {**vector_metadata(row), "sender": row["sender"], "flags": flags(row)}
            for (where, complete), metadata in (
                (required.vector_filter(100), vector_metadata(row)),
                (required.word_filter, word_metadata),
            ):
                passes = where is None or matches_filter(where, metadata)
                assert passes or not means(row), (query, where)
                assert not complete or passes == means(row), (query, where)
    assert matched > QUERIES // 2


def test_conditions_are_in_the_statement_as_values(connection: psycopg.Connection) -> None:
    parsed = parse_request(Request('subject:"x\'; drop table messages; --" or to:%'))
    filters = compile_filters(connection, parsed.clauses, ["harbor-dev"])
    assert filters is not None
    assert "drop table" not in filters.statement("newest")
    assert "{passes}" in statement("search", "newest")
