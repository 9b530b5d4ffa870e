"""Search the table of words: the best by BM25, or the newest where no term ranks.

[tokens] Lexemes as tokens that LanceDB leaves alone, and the beginnings by which prefixes find them.

LanceDB's tokenizer `simple` splits at what is not alphanumeric, in a query as in a text, and only
with it does an index answer `contains_tokens` in a filter. So every other character is written with
letters of the Yi syllabary: those of ASCII as one letter, the rest by number.

[query] A question as LanceDB takes it: a query of its text index, and a filter beside it.

What ranks is one MatchQuery: its best are found without scoring every document. Phrases, required
words that rank, and what excludes, are parts of a BooleanQuery, which scores all documents that
match; other required words, and prefixes, are a filter, which the same index answers
(`contains_tokens`).

[rows] Documents as rows of a LanceDB table, and back.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
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

from mail_assets.lance.table import PRIMARY_KEY, READ_SINGLY, OpenTable
from mail_assets.month import known_month, month_number
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.lance_filters import lance_literal, lance_sql, split_filter
from mail_assets.words.index import Document, WordMatch
from mail_assets.words.query import (
    EXACT_PREFIX,
    SHARE_STEP,
    Clause,
    Phrase,
    Prefix,
    Term,
    WordQuery,
)

#: Letters (U+A000 to U+A07F) that stand for the characters of ASCII, then one around numbers.
_LETTERS = 0xA000
_NUMBER = _LETTERS + 0x80

# Most of a text are words of the language, so few lexemes are encoded more than once a run.
_CACHED = 1 << 16


class _Letters(dict[int, str]):
    """A table for `str.translate` that grows by the characters it meets."""

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


Made = TypeVar("Made")


class _Cache(dict[str, Made], Generic[Made]):
    """What is made of lexemes, as a table that makes what it lacks and is emptied when it is full.

    A table is asked in a third of the time that a call of `lru_cache` takes, 100 times a message.
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
    if longest.isascii() and longest.isalnum():  # encoded as they are
        return tuple(beginnings)
    return tuple(map(_encode, beginnings))


_TOKENS, _BEGINNINGS = _Cache(_encode), _Cache(_beginnings)


def encode_lexeme(lexeme: str) -> str:
    """Return a lexeme as one token; different lexemes give different tokens."""
    return _TOKENS[lexeme]


def encode_lexemes(lexemes: Iterable[str]) -> str:
    """Return lexemes as a text, in their order."""
    return " ".join(map(_TOKENS.__getitem__, lexemes))


def encode_prefix(text: str) -> str:
    """Return the token that `encode_prefixes` gives every lexeme beginning so.

    Of a longer prefix it is that of its first characters: it finds what begins with so much of it.
    """
    return encode_lexeme(text[:EXACT_PREFIX])


def encode_prefixes(lexemes: Iterable[str]) -> str:
    """Return the beginnings of lexemes as a text, each once; the same text each time."""
    beginnings = map(_BEGINNINGS.__getitem__, dict.fromkeys(lexemes))
    return " ".join(dict.fromkeys(chain.from_iterable(beginnings)))


# At 262,000 documents 50 words take 80 ms, 250 take 240.
MAX_TERMS = 100
# Each term is there as often as its share says.
MAX_TOKENS = 256
# A phrase adds its own score, which would count twice what its words count already.
OVER_PHRASES = 1e6


class LanceQuery(NamedTuple):
    """What LanceDB is asked: `text` may be None, `scale` is what its scores are multiplied by."""

    text: FullTextQuery | None
    condition: str | None
    scale: float = 1.0


def lance_query(query: WordQuery, where: Filter | None, *, indexed: bool = True) -> LanceQuery:
    """Return the query and the filter; not `indexed`, the filter reads the texts."""
    ordered = [either for either in query.required if any(map(_has_order, either))]
    plain = [either for either in query.required if either not in ordered]
    ranking, plain = _take_required(query.terms[:MAX_TERMS], plain)
    must: list[FullTextQuery] = [_any(either) for either in ordered]
    if not query.terms and not must and plain:
        must.append(_any(plain.pop(0)))
    scale = OVER_PHRASES if query.terms and must else 1.0
    must += [ranking_query(terms, scale) for terms in ranking.required]
    should: list[FullTextQuery] = []
    if ranking.others:  # where no term is required, a hit has one of them
        (should if ranking.required else must).append(ranking_query(ranking.others, scale))
    refused = [_clause_query(clause) for clause in query.excluded]
    parts = [] if where is None else [lance_sql(where, ("flags",))]
    parts += [_contains_any(either, indexed) for either in plain]
    return LanceQuery(_combine(must, should, refused), " AND ".join(parts) or None, scale)


class _Ranking(NamedTuple):
    """Terms of which every hit has one of each group, and the others."""

    required: list[list[Term]]
    others: list[Term]


def _take_required(
    terms: Sequence[Term], required: Iterable[tuple[Clause, ...]]
) -> tuple[_Ranking, list[tuple[Clause, ...]]]:
    """Return the terms by whether a hit must have them, and the clauses that this does not say.

    To look a common word up as a filter takes 0.4 us for each document that has it: 50 ms of
    120,000, of which the best are found in 5.
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
    """Return the lexeme that a clause is, None for a prefix."""
    if isinstance(clause, Phrase):
        return clause.lexemes[0]
    return None if isinstance(clause, Prefix) else clause


def ranking_query(terms: Sequence[Term], scale: float = 1.0) -> MatchQuery:
    """Return what ranks.

    Lance adds the score of a word for each time that a query has it, and finds the best exactly
    however often that is. A BooleanQuery of weighted parts scores every document that matches.
    """
    terms = terms[:MAX_TERMS]
    step = share_step(terms)
    words = [encode_lexeme(term.lexeme) for term in terms for _ in range(_steps(term, step))]
    return _match("lexemes", " ".join(words[:MAX_TOKENS]), boost=step * scale)


def share_step(terms: Sequence[Term]) -> float:
    """Return the largest step that all shares are multiples of, or that keeps to MAX_TOKENS."""
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
    """Return the column that a clause is about, and the tokens that it wants there."""
    if isinstance(clause, Prefix):
        return "prefixes", encode_prefix(clause.text)
    if isinstance(clause, Phrase):
        return "lexemes", encode_lexemes(clause.lexemes)
    return "lexemes", encode_lexeme(clause)


def _match(column: str, tokens: str, boost: float = 1.0) -> MatchQuery:
    return MatchQuery(  # type: ignore[call-arg]
        tokens, column, boost=boost, operator=FullTextOperator.OR
    )


SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("list", pa.string()),
        pa.field("month", pa.float64()),
        pa.field("sent_at", pa.float64()),
        pa.field("sender", pa.string()),
        pa.field("message_id", pa.string()),
        pa.field("flags", pa.list_(pa.string())),
        # What a match has, as JSON: 300 matches in five columns take 12 ms to read, in one 2.
        pa.field("match", pa.string(), metadata=READ_SINGLY),
        pa.field("lexemes", pa.string()),
        pa.field("prefixes", pa.string()),
    ]
)

# One commit: a month of a large list.
MAX_BATCH = 20_000
MAX_LEXEMES = 10_000_000


def batch_documents(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield batches that fit into memory, no key twice in one; the last under a key stays."""
    batch: dict[str, Document] = {}
    size = 0
    for document in documents:
        if batch and (len(batch) == MAX_BATCH or size + len(document.lexemes) > MAX_LEXEMES):
            yield list(batch.values())
            batch, size = {}, 0
        batch[document.key] = document
        size += len(document.lexemes)
    if batch:
        yield list(batch.values())


def to_arrow(batch: Sequence[Document]) -> pa.Table:
    """Return documents as rows."""
    rows = [
        (
            document.key,
            document.month.list_name,
            float(month_number(document.month.month)),
            float(document.sent_at),
            document.sender,
            document.message_id,
            list(document.flags),
            _match_json(document),
            encode_lexemes(document.lexemes),
            encode_prefixes(document.lexemes),
        )
        for document in batch
    ]
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def to_matches(texts: Sequence[str], scores: Iterable[float]) -> list[WordMatch]:
    """Return the rows of a search from their column `match`, with these scores."""
    # One document of JSON is parsed in a quarter of the time of 300.
    rows = json.loads(f"[{','.join(texts)}]")
    return [
        WordMatch(key, known_month(list_name, month), message_id, variant, score)
        for (key, list_name, month, message_id, variant), score in zip(rows, scores, strict=True)
    ]


def _match_json(document: Document) -> str:
    month = document.month
    return json.dumps(
        [document.key, month.list_name, month.month, document.message_id, document.variant],
        ensure_ascii=False,
    )


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
