"""Search the table of words: the best by BM25, or the newest where no term ranks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter
from typing import Any

from lancedb.query import AsyncFTSQuery, AsyncQuery
from lancedb.table import AsyncTable

from mail_assets.lance.table import OpenTable
from mail_assets.vectors.filters import Filter, matches_filter, split_filter
from mail_assets.words.document import WordMatch
from mail_assets.words.lance.query import LanceQuery, lance_query
from mail_assets.words.lance.rows import to_matches
from mail_assets.words.query import WordQuery

# What Lance 13 says to contains_tokens where none of the rows is in the index yet.
_NOTHING_INDEXED = "Index not found even though it must have been found earlier"

# The newest are looked for in the last so many days first: LanceDB has no order beside the score in
# a search for words, and to read all messages with a common word takes 145 ms of 262,000 documents.
SPANS = (30, 120, 480, 1920, 7680)
_DAY = 86_400

Row = dict[str, Any]


async def search_table(
    kept: OpenTable, query: WordQuery, top_k: int, where: Filter | None
) -> list[WordMatch]:
    """Return up to `top_k` matches, best or newest first, equal ones in the order of keys."""
    table = kept.table
    if query.terms:
        rows = await _read_best(kept, query, where, top_k)
        matches = to_matches([row["match"] for row in rows], [row["_score"] for row in rows])
        return sorted(matches, key=lambda match: (-match.score, match.key))
    newest = await _take_newest(table, query, where, top_k)
    matches = to_matches([text for _, text in newest], [0.0] * len(newest))
    sent_at = [-seconds for seconds, _ in newest]
    return [match for _, match in sorted(zip(sent_at, matches, strict=True))[:top_k]]


async def list_ids(
    table: AsyncTable, query: WordQuery, where: Filter | None, most: int
) -> list[str]:
    """Return the Message-IDs of up to so many documents, in no order."""
    return [row["message_id"] for row in await _read(table, query, where, most, "message_id")]


async def _read_best(
    kept: OpenTable, query: WordQuery, where: Filter | None, top_k: int
) -> list[Row]:
    """Return the column `match` of the best, in no order."""
    split = await split_filter(where, top_k, kept.estimates)
    if split.after is not None:
        columns = ("match", *split.fields)
        found = await _read(kept.table, query, split.before, split.asked, *columns)
        passing = [row for row in found if matches_filter(split.after, row)]
        if len(passing) >= top_k or len(found) < split.asked:
            return nlargest(top_k, passing, key=itemgetter("_score"))
    return await _read(kept.table, query, where, top_k, "match")


async def _take_newest(
    table: AsyncTable, query: WordQuery, where: Filter | None, top_k: int, *, again: bool = True
) -> list[tuple[float, str]]:
    """Return when each of the newest was sent, and its column `match`, in no order.

    They are read after they were found, each time at the newest version. Where upkeep or a writer
    has moved rows meanwhile, which gives them other numbers, both is done `again`.
    """
    newest = await _read_newest(table, query, where, top_k)
    found = table.take_row_ids([*newest]).select(["match"]).with_row_id()
    try:
        rows = (await found.to_arrow()).to_pylist()
    except (RuntimeError, OSError, ValueError):
        if not again:
            raise
        rows = []
    if again and len(rows) < len(newest):
        return await _take_newest(table, query, where, top_k, again=False)
    return [(newest[row["_rowid"]], row["match"]) for row in rows]


async def _read_newest(
    table: AsyncTable, query: WordQuery, where: Filter | None, top_k: int
) -> dict[int, float]:
    """Return the numbers of the newest `top_k` rows, and when each was sent.

    The last of them has all that were sent at its time beside it.
    """
    rows: list[Row] = []
    for within in await _spans(table, query, where, top_k):
        rows = await _read(table, query, within, None, "sent_at")
        if not query.required and query.excluded:
            refused = WordQuery((), (query.excluded,))
            numbers = {
                row["_rowid"] for row in await _read(table, refused, within, None, "sent_at")
            }
            rows = [row for row in rows if row["_rowid"] not in numbers]
        if len(rows) >= top_k:
            break
    sent = sorted((row["sent_at"] for row in rows), reverse=True)
    first = sent[top_k - 1] if len(sent) >= top_k else -math.inf
    return {row["_rowid"]: row["sent_at"] for row in rows if row["sent_at"] >= first}


async def _spans(
    table: AsyncTable, query: WordQuery, where: Filter | None, top_k: int
) -> list[Filter | None]:
    """Return the filter within ever longer times before now, at last as it is.

    At once as it is, where fewer match than are wanted.
    """
    if query.required and len(await _read(table, query, where, top_k, "sent_at")) < top_k:
        return [where]
    recent: list[Filter] = [{"sent_at": {"$gte": time.time() - days * _DAY}} for days in SPANS]
    return [*(one if where is None else {"$and": [where, one]} for one in recent), where]


async def _read(
    table: AsyncTable, query: WordQuery, where: Filter | None, limit: int | None, *columns: str
) -> list[Row]:
    """Return columns of the rows that match; of the best `limit` of them where terms rank.

    To read a text of a row takes more than to find it.
    """
    try:
        return await _run(table, lance_query(query, where), limit, columns)
    except RuntimeError as error:
        if _NOTHING_INDEXED not in str(error):
            raise
        return await _run(table, lance_query(query, where, indexed=False), limit, columns)


async def _run(
    table: AsyncTable, asked: LanceQuery, limit: int | None, columns: Sequence[str]
) -> list[Row]:
    score = [] if asked.text is None else ["_score"]
    search: AsyncQuery | AsyncFTSQuery = table.query()
    if asked.text is not None:
        search = table.query().nearest_to_text(asked.text)
    search = search.select([*columns, *score]).with_row_id()
    if asked.condition is not None:
        search = search.where(asked.condition)
    found = await search.limit(limit or max(1, await table.count_rows())).to_arrow()
    rows: list[Row] = found.to_pylist()
    for row in rows if score else ():
        row["_score"] /= asked.scale
    return rows
