"""Queries of the table of words: the best by BM25, or the newest or oldest if no term ranks.

Tokens. LanceDB's tokenizer `simple` splits texts and queries at characters that are not
alphanumeric. Only with this tokenizer does an index answer `contains_tokens` in a filter. So other
characters are encoded with letters of the Yi syllabary: ASCII characters as one letter, others by
number.

Queries. Ranking terms are one MatchQuery, whose best LanceDB finds without scoring every document.
Phrases, required words that rank, and exclusions are parts of a BooleanQuery, which scores all
matching documents. Other required words and prefixes are a filter, which the same index answers.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from lancedb.query import (
    AsyncFTSQuery,
    AsyncQuery,
    BooleanQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    Occur,
)
from lancedb.query import PhraseQuery as LancePhraseQuery
from lancedb.table import AsyncTable

from mail_assets.lance.table import OpenTable
from mail_assets.month import known_month
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.lance_filters import lance_literal, lance_sql, split_filter
from mail_assets.words.index import (
    EXACT_PREFIX,
    SHARE_STEP,
    Clause,
    Phrase,
    Prefix,
    Term,
    WordMatch,
    WordQuery,
)

#: First of the letters U+A000 to U+A07F, which encode ASCII; the next letter encloses numbers.
_LETTERS = 0xA000
_NUMBER = _LETTERS + 0x80
# Entries of a cache. Most of a text is common words, so few lexemes are encoded twice.
_CACHED = 1 << 16

# 50 words take 80 ms at 262,000 documents, 250 take 240.
MAX_TERMS = 100
# Each term is repeated according to its share.
MAX_TOKENS = 256
# Scale of the ranking terms. A phrase adds its own score for words that already count; compared to
# this it is negligible.
OVER_PHRASES = 1e6

# Days. The newest messages are first searched in the last so many days, the oldest in the first:
# LanceDB orders a search for words only by score, and reading all messages with a common word is
# slow.
SPANS = (30, 120, 480, 1920, 7680)
_DAY = 86_400
# LanceDB's error for contains_tokens if no row is in the index yet.
_NOTHING_INDEXED = "Index not found even though it must have been found earlier"

Row = dict[str, Any]
Made = TypeVar("Made")


async def search_table(
    kept: OpenTable, query: WordQuery, top_k: int, where: Filter | None
) -> list[WordMatch]:
    """Return up to `top_k` matches, best first or by date, equal ones in the order of keys."""
    table = kept.table
    if query.terms:
        matches = to_matches(*await _read_best(kept, query, where, top_k))
        matches.sort()  # by key; two sorts of thousands take a third of the time of one by both
        matches.sort(key=attrgetter("score"), reverse=True)
        return matches
    newest = await _take_newest(table, query, where, top_k)
    matches = to_matches([text for _, text in newest], [0.0] * len(newest))
    sign = -1 if query.oldest_from is None else 1
    sent_at = [sign * seconds for seconds, _ in newest]
    return [match for _, match in sorted(zip(sent_at, matches, strict=True))[:top_k]]


async def list_ids(
    table: AsyncTable, query: WordQuery, where: Filter | None, most: int
) -> list[str]:
    """Return the Message-IDs of up to `most` documents, in no order."""
    return [row["message_id"] for row in await _read(table, query, where, most, "message_id")]


async def _read_best(
    kept: OpenTable, query: WordQuery, where: Filter | None, top_k: int
) -> tuple[list[str], list[float]]:
    """Return the column `match` of the best, and their scores."""
    split = await split_filter(where, top_k, kept.estimates)
    if split.after is not None:
        columns = ("match", *split.fields)
        found = await _read(kept.table, query, split.before, split.asked, *columns)
        passing = [row for row in found if matches_filter(split.after, row)]
        if len(passing) >= top_k or len(found) < split.asked:
            best = nlargest(top_k, passing, key=itemgetter("_score"))
            return [row["match"] for row in best], [row["_score"] for row in best]
    read = await _read_columns(kept.table, query, where, top_k, "match")
    return read["match"], read["_score"]


async def _take_newest(
    table: AsyncTable, query: WordQuery, where: Filter | None, top_k: int, *, again: bool = True
) -> list[tuple[float, str]]:
    """Return the time of sending and the column `match` of the newest, or oldest, in no order.

    Finding and reading both use the newest version. If upkeep or a writer has moved rows between
    them, which changes their numbers, both are repeated once (`again`).
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
    """Return the numbers of the newest, or oldest, `top_k` rows, and when each was sent.

    All rows that were sent at the time of the last one are included.
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
    sign = -1 if query.oldest_from is None else 1
    sent = sorted(sign * row["sent_at"] for row in rows)
    last = sent[top_k - 1] if len(sent) >= top_k else math.inf
    return {row["_rowid"]: row["sent_at"] for row in rows if sign * row["sent_at"] <= last}


async def _spans(
    table: AsyncTable, query: WordQuery, where: Filter | None, top_k: int
) -> list[Filter | None]:
    """Return the filter limited to longer and longer times, and finally without limit.

    The times end now, or begin with the oldest message. If fewer rows match than are wanted, return
    only the filter without limit.
    """
    if query.required and len(await _read(table, query, where, top_k, "sent_at")) < top_k:
        return [where]
    spans: list[Filter]
    if query.oldest_from is None:
        spans = [{"sent_at": {"$gte": time.time() - days * _DAY}} for days in SPANS]
    else:
        spans = [{"sent_at": {"$lt": query.oldest_from + days * _DAY}} for days in SPANS]
    return [*(one if where is None else {"$and": [where, one]} for one in spans), where]


async def _read(
    table: AsyncTable, query: WordQuery, where: Filter | None, limit: int | None, *columns: str
) -> list[Row]:
    """Return the rows that match with some columns; the best `limit` rows if terms rank."""
    found = await _read_columns(table, query, where, limit, *columns)
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


async def _read_columns(
    table: AsyncTable, query: WordQuery, where: Filter | None, limit: int | None, *columns: str
) -> dict[str, list[Any]]:
    """Return columns of the rows that match; of the best `limit` rows if terms rank.

    Reading a text of a row takes longer than finding it.
    """
    try:
        return await _run(table, lance_query(query, where), limit, columns)
    except RuntimeError as error:
        if _NOTHING_INDEXED not in str(error):
            raise
        return await _run(table, lance_query(query, where, indexed=False), limit, columns)


async def _run(
    table: AsyncTable, asked: LanceQuery, limit: int | None, columns: Sequence[str]
) -> dict[str, list[Any]]:
    score = [] if asked.text is None else ["_score"]
    search: AsyncQuery | AsyncFTSQuery = table.query()
    if asked.text is not None:
        search = table.query().nearest_to_text(asked.text)
    search = search.select([*columns, *score]).with_row_id()
    if asked.condition is not None:
        search = search.where(asked.condition)
    found = await search.limit(limit or max(1, await table.count_rows())).to_arrow()
    read: dict[str, list[Any]] = found.to_pydict()
    if score and asked.scale != 1.0:
        read["_score"] = [one / asked.scale for one in read["_score"]]
    return read


def to_matches(texts: Sequence[str], scores: Iterable[float]) -> list[WordMatch]:
    """Return matches from the column `match` of rows, with these scores."""
    # Parsing one JSON text takes a quarter of the time of parsing 300.
    rows = json.loads(f"[{','.join(texts)}]")
    return [
        WordMatch(key, known_month(list_name, month), message_id, variant, score)
        for (key, list_name, month, message_id, variant), score in zip(rows, scores, strict=True)
    ]


class LanceQuery(NamedTuple):
    """A query for LanceDB; `text` may be None, scores are multiplied by `scale`."""

    text: FullTextQuery | None
    condition: str | None
    scale: float = 1.0


def lance_query(query: WordQuery, where: Filter | None, *, indexed: bool = True) -> LanceQuery:
    """Return the query and the filter; if not `indexed`, the filter reads the texts."""
    ordered = [either for either in query.required if any(map(_has_order, either))]
    plain = [either for either in query.required if either not in ordered]
    ranking, plain = _take_required(query.terms[:MAX_TERMS], plain)
    must: list[FullTextQuery] = [_any(either) for either in ordered]
    if not query.terms and not must and plain:
        must.append(_any(plain.pop(0)))
    scale = OVER_PHRASES if query.terms and must else 1.0
    must += [ranking_query(terms, scale) for terms in ranking.required]
    should: list[FullTextQuery] = []
    if ranking.others:  # if no term is required, a hit has one of them
        (should if ranking.required else must).append(ranking_query(ranking.others, scale))
    refused = [_clause_query(clause) for clause in query.excluded]
    parts = [] if where is None else [lance_sql(where, ("flags",))]
    parts += [_contains_any(either, indexed) for either in plain]
    return LanceQuery(_combine(must, should, refused), " AND ".join(parts) or None, scale)


class _Ranking(NamedTuple):
    """Groups of terms (every hit has a term of each group), and the other terms."""

    required: list[list[Term]]
    others: list[Term]


def _take_required(
    terms: Sequence[Term], required: Iterable[tuple[Clause, ...]]
) -> tuple[_Ranking, list[tuple[Clause, ...]]]:
    """Return the terms, divided by whether a hit must have them, and the remaining clauses.

    A common word as a filter takes 0.4 us for each document that has it, 50 ms for 120,000. Ranking
    finds the best of them in 5 ms.
    """
    others = {term.lexeme: term for term in terms}
    groups, left = [], []
    for either in required:
        lexemes = dict.fromkeys(map(_lexeme, either))
        if all(lexeme in others for lexeme in lexemes):
            groups.append([others.pop(lexeme) for lexeme in lexemes if lexeme is not None])
        else:
            left.append(either)
    return _Ranking(groups, [*others.values()]), left


def _lexeme(clause: Clause) -> str | None:
    if isinstance(clause, Phrase):
        return clause.lexemes[0]
    return None if isinstance(clause, Prefix) else clause


def ranking_query(terms: Sequence[Term], scale: float = 1.0) -> MatchQuery:
    """Return the query that ranks by terms.

    Lance adds the score of a word as often as the query repeats it, and still finds the best
    quickly. A BooleanQuery of weighted parts would score every matching document.
    """
    terms = terms[:MAX_TERMS]
    step = share_step(terms)
    words = [encode_lexeme(term.lexeme) for term in terms for _ in range(_steps(term, step))]
    return _match("lexemes", " ".join(words[:MAX_TOKENS]), boost=step * scale)


def share_step(terms: Sequence[Term]) -> float:
    """Return the largest step that divides all shares, or a larger one for MAX_TOKENS."""
    step = min(_steps(term, SHARE_STEP) for term in terms) * SHARE_STEP
    while step > SHARE_STEP and any(_steps(term, SHARE_STEP) * SHARE_STEP % step for term in terms):
        step -= SHARE_STEP
    while step < 1 and sum(_steps(term, step) for term in terms) > MAX_TOKENS:
        step *= 2
    return step


def _steps(term: Term, step: float) -> int:
    return max(1, round(term.share / step))


def _combine(
    must: list[FullTextQuery], should: list[FullTextQuery], refused: list[FullTextQuery]
) -> FullTextQuery | None:
    if not must:
        return None
    if len(must) == 1 and not should and not refused:
        return must[0]
    asked = {Occur.MUST: must, Occur.SHOULD: should, Occur.MUST_NOT: refused}
    return BooleanQuery([(occur, part) for occur, parts in asked.items() for part in parts])


def _any(either: Sequence[Clause]) -> FullTextQuery:
    if len(either) == 1:
        return _clause_query(either[0])
    return BooleanQuery([(Occur.SHOULD, _clause_query(clause)) for clause in either])


def _clause_query(clause: Clause) -> FullTextQuery:
    column, tokens = _tokens(clause)
    if _has_order(clause):
        return LancePhraseQuery(tokens, column)  # type: ignore[call-arg]
    return _match(column, tokens)


def _has_order(clause: Clause) -> bool:
    return isinstance(clause, Phrase) and len(clause.lexemes) > 1


def _contains_any(either: Sequence[Clause], indexed: bool) -> str:
    parts = []
    for clause in either:
        column, tokens = _tokens(clause)
        contains = f"contains_tokens({column}, {lance_literal(tokens)})"
        parts.append(contains if indexed else f"({contains} IS TRUE)")
    return f"({' OR '.join(parts)})"


def _tokens(clause: Clause) -> tuple[str, str]:
    """Return the column of a clause, and its tokens there."""
    if isinstance(clause, Prefix):
        return "prefixes", encode_lexeme(clause.text[:EXACT_PREFIX])
    if isinstance(clause, Phrase):
        return "lexemes", encode_lexemes(clause.lexemes)
    return "lexemes", encode_lexeme(clause)


def _match(column: str, tokens: str, boost: float = 1.0) -> MatchQuery:
    return MatchQuery(  # type: ignore[call-arg]
        tokens, column, boost=boost, operator=FullTextOperator.OR
    )


class _Letters(dict[int, str]):
    """Table for `str.translate` that grows with the characters it meets."""

    def __missing__(self, code: int) -> str:
        if _LETTERS <= code <= _NUMBER or not chr(code).isalnum():
            letters = (
                chr(_LETTERS + code) if code < 0x80 else f"{chr(_NUMBER)}{code:x}{chr(_NUMBER)}"
            )
        else:
            letters = chr(code)
        self[code] = letters
        return letters


_TO_LETTERS = _Letters()


class _Cache(dict[str, Made], Generic[Made]):
    """Values made from lexemes: a dict that makes missing values and is emptied when it is full.

    A dict takes a third of the time of `lru_cache`; it is used 100 times per message.
    """

    def __init__(self, make: Callable[[str], Made]) -> None:
        self._make = make

    def __missing__(self, lexeme: str) -> Made:
        if len(self) >= _CACHED:
            self.clear()
        made = self[lexeme] = self._make(lexeme)
        return made


def _encode(lexeme: str) -> str:
    return lexeme.translate(_TO_LETTERS)


def _beginnings(lexeme: str) -> tuple[str, ...]:
    longest = lexeme[:EXACT_PREFIX]
    beginnings = (longest[:length] for length in range(1, len(longest) + 1))
    if longest.isascii() and longest.isalnum():  # encoded unchanged
        return tuple(beginnings)
    return tuple(map(_encode, beginnings))


_TOKENS, _BEGINNINGS = _Cache(_encode), _Cache(_beginnings)


def encode_lexeme(lexeme: str) -> str:
    """Return a lexeme as one token; different lexemes give different tokens."""
    return _TOKENS[lexeme]


def encode_lexemes(lexemes: Iterable[str]) -> str:
    """Return lexemes as a text, in their order."""
    return " ".join(map(_TOKENS.__getitem__, lexemes))


def encode_prefixes(lexemes: Iterable[str]) -> str:
    """Return the beginnings of lexemes as a text, each once and in a fixed order."""
    beginnings = map(_BEGINNINGS.__getitem__, dict.fromkeys(lexemes))
    return " ".join(dict.fromkeys(chain.from_iterable(beginnings)))
