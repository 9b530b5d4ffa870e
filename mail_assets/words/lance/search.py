"""Search the table of words: the best by BM25, or the newest where no term ranks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from lancedb.table import Table

from mail_assets.vectors.filters import Filter
from mail_assets.words.document import WordMatch
from mail_assets.words.lance.query import LanceQuery, lance_query
from mail_assets.words.lance.rows import to_match
from mail_assets.words.query import WordQuery

# What Lance 13 says to contains_tokens where none of the rows is in the index yet.
_NOTHING_INDEXED = "Index not found even though it must have been found earlier"

# The newest are looked for in the last so many days first: LanceDB orders by score only, and to
# read all messages with a common word takes 145 ms of 262,000 documents.
SPANS = (30, 120, 480, 1920, 7680)
_DAY = 86_400

Row = dict[str, Any]


def search_table(
    table: Table, query: WordQuery, top_k: int, where: Filter | None
) -> list[WordMatch]:
    """Return up to `top_k` matches, best or newest first, equal ones in the order of keys."""
    if query.terms:
        matches = [to_match(row, row["_score"]) for row in _read(table, query, where, top_k)]
        return sorted(matches, key=lambda match: (-match.score, match.key))
    rows = _read_newest(table, query, where, top_k)
    newest = sorted((-row["sent_at"], to_match(row, 0.0)) for row in rows)
    return [match for _, match in newest[:top_k]]


def _read_newest(table: Table, query: WordQuery, where: Filter | None, top_k: int) -> list[Row]:
    """Return rows among which the newest `top_k` are."""
    if query.required:
        rows = _read(table, query, where, top_k)
        if len(rows) < top_k:
            return rows
    for within in _spans(where):
        rows = _read(table, query, within, None)
        if not query.required and query.excluded:
            refused = WordQuery((), (query.excluded,))
            keys = {row["match"] for row in _read(table, refused, within, None)}
            rows = [row for row in rows if row["match"] not in keys]
        if len(rows) >= top_k:
            break
    return rows


def _spans(where: Filter | None) -> Iterator[Filter | None]:
    """Yield the filter within ever longer times before now, at last as it is."""
    for days in SPANS:
        since: Filter = {"sent_at": {"$gte": time.time() - days * _DAY}}
        yield since if where is None else {"$and": [where, since]}
    yield where


def _read(table: Table, query: WordQuery, where: Filter | None, limit: int | None) -> list[Row]:
    """Return the rows that match; the best `limit` of them where terms rank."""
    try:
        return _run(table, lance_query(query, where), limit)
    except RuntimeError as error:
        if _NOTHING_INDEXED not in str(error):
            raise
        return _run(table, lance_query(query, where, indexed=False), limit)


def _run(table: Table, asked: LanceQuery, limit: int | None) -> list[Row]:
    score = [] if asked.text is None else ["_score"]
    search = table.search(asked.text).select(["match", "sent_at", *score])
    if asked.condition is not None:
        search = search.where(asked.condition)
    rows: list[Row] = search.limit(limit or max(1, table.count_rows())).to_arrow().to_pylist()
    for row in rows if score else ():
        row["_score"] /= asked.scale
    return rows
