"""A question as LanceDB takes it: a query of its text index, and a filter beside it.

What ranks is one MatchQuery: its best are found without scoring every document. Phrases, required
words that rank, and what excludes, are parts of a BooleanQuery, which scores all documents that
match; other required words, and prefixes, are a filter, which the same index answers
(`contains_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lancedb.query import BooleanQuery, FullTextOperator, FullTextQuery, MatchQuery, Occur
from lancedb.query import PhraseQuery as LancePhraseQuery

from mail_assets.vectors.filters import Filter, lance_literal, lance_sql
from mail_assets.words.lance.tokens import encode_lexeme, encode_lexemes, encode_prefix
from mail_assets.words.query import SHARE_STEP, Clause, Phrase, Prefix, Term, WordQuery

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
