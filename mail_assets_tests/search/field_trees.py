"""Random queries of fields with AND, OR and NOT, each with a predicate for a row of messages."""

import datetime as dt
import random
import re
from collections.abc import Callable
from typing import Any

import psycopg

#: "of the lease" in words that have its stem.
OF_THE_LEASE = re.compile(r"\bof\W+the\W+leas(?:e[sd]?|ing)\b", re.IGNORECASE)
Row = dict[str, Any]
#: A query as a person types it, and its predicate.
Tree = tuple[str, Callable[[Row], bool]]


def read_rows(connection: psycopg.Connection) -> list[Row]:
    """Return all messages with the fields that queries can have."""
    found = connection.execute(
        "select m.message_id, m.list, m.month, m.variant, m.sent_at, m.from_name,"
        " lower(m.from_email), m.recipients || m.cc, m.subject, t.thread_id, m.segments,"
        " m.attachments, m.in_reply_to || m.refs, m.search @@ 'leas', m.search @@ 'job <-> queue',"
        " m.search @@ 'harb:*', m.body_text from messages m join threads t using (message_id)"
        " order by m.message_id, m.list, m.month, m.variant"
    )
    names = ("id", "list", "month", "variant", "sent_at", "name", "sender", "receivers", "subject")
    more = ("thread", "segments", "attachments", "parents", "lease", "phrase", "prefix", "body")
    return [dict(zip((*names, *more), row, strict=True)) for row in found]


def flags(row: Row) -> list[str]:
    is_patch = any(s[2] == "patch" for s in row["segments"]) or any(
        one["is_patch"] for one in row["attachments"]
    )
    has = [("patch", is_patch), ("attachment", bool(row["attachments"]))]
    return [name for name, value in has if value] + ["reply" if row["parents"] else "first"]


def _own_text(row: Row) -> str:
    parts = [row["body"][start:end] for start, end, kind in row["segments"] if kind == "text"]
    return f"{row['subject']}\n{''.join(parts)}"


def _day(row: Row) -> dt.date:
    sent_at: dt.datetime = row["sent_at"]
    return sent_at.astimezone(dt.UTC).date()


def _files(row: Row) -> list[str]:
    return [one["name"].lower() for one in row["attachments"]]


def make_fields(rows: list[Row], chance: random.Random) -> list[Tree]:
    """Return each field with the value of a row, so that most fields have matches."""
    row = chance.choice(rows)
    name, when = row["name"][:5].lower(), _day(row)
    subject, kind = row["subject"][:6].strip().lower(), chance.choice(flags(row))
    receiver = chance.choice([*row["receivers"], "lists"])[2:9].lower()
    file = chance.choice([*_files(row), "patch"])[-6:]
    month_start, year = when.replace(day=1), when.year
    next_month = (month_start + dt.timedelta(31)).replace(day=1)
    return [
        (f"list:{row['list']}", lambda r: r["list"] == row["list"]),
        (f"month:{row['month']}", lambda r: r["month"] == row["month"]),
        (f"from:{row['sender'].upper()}", lambda r: r["sender"] == row["sender"]),
        (
            f'from:"{name}"',
            lambda r: all(one in f"{r['name']} {r['sender']}".lower() for one in name.split()),
        ),
        ("from:nobody@nowhere.example", lambda r: False),
        (f'to:"{receiver}"', lambda r: any(receiver in one.lower() for one in r["receivers"])),
        (f'subject:"{subject}"', lambda r: subject in r["subject"].lower()),
        (f'file:"{file}"', lambda r: any(file in one for one in _files(r))),
        (f"thread:{row['id']}", lambda r: r["thread"] == row["thread"]),
        ("thread:none@nowhere.example", lambda r: False),
        (f"id:{row['id']}", lambda r: r["id"] == row["id"]),
        (f"kind:{kind}", lambda r: kind in flags(r)),
        (f"after:{when}", lambda r: _day(r) >= when),
        (f"before:{when}", lambda r: _day(r) < when),
        (f"date:{when:%Y-%m}", lambda r: month_start <= _day(r) < next_month),
        (f"date:..{year}", lambda r: _day(r).year <= year),
    ]


TEXTS: list[Tree] = [
    ('"lease"', lambda r: r["lease"]),
    ('"job queue"', lambda r: r["phrase"]),
    ('"of the leases"', lambda r: bool(OF_THE_LEASE.search(_own_text(r)))),
    ("harb*", lambda r: r["prefix"]),
]


def make_tree(rows: list[Row], chance: random.Random, depth: int = 3, texts: int = 4) -> Tree:
    """Return a field, a text, or combined trees; of 20 leaves, `texts` are texts."""
    if depth == 0 or chance.random() < 0.3:
        is_text = chance.randrange(20) < texts
        text, means = chance.choice(TEXTS if is_text else make_fields(rows, chance))
    else:
        parts = [
            make_tree(rows, chance, depth - 1, texts) for _ in range(chance.choice([1, 2, 2, 3]))
        ]
        of_all = [means for _, means in parts]
        if chance.random() < 0.5:
            # in parentheses, because repeated fields would be alternatives
            joint = chance.choice([" ", " AND "])
            text = f"({joint.join(f'({text})' for text, _ in parts)})"
            means = lambda row: all(one(row) for one in of_all)  # noqa: E731
        else:
            text = f"({' OR '.join(text for text, _ in parts)})"
            means = lambda row: any(one(row) for one in of_all)  # noqa: E731
    if chance.random() < 0.25:
        return f"{chance.choice(['-', '–', 'NOT '])}{text}", lambda row: not means(row)
    return text, means
