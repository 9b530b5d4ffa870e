"""A question as LanceDB takes it: what ranks and what excludes as a query, the rest as a filter.

The filter is answered by the same index (`contains_tokens`), so the best are found without scoring
every document that has the required words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lancedb.query import BooleanQuery, FullTextQuery, MatchQuery, Occur

from mail_assets.vectors.filter_sql import lance_literal, lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.words.lance.tokens import encode_lexeme, encode_lexemes, encode_prefix
from mail_assets.words.query import SHARE_STEP, Clause, Phrase, Prefix, Term, WordQuery


def ranking_query(query: WordQuery) -> FullTextQuery:
    """Return what ranks and excludes, of a query with terms."""
    ranked = _match("lexemes", _repeat(query.terms), SHARE_STEP)
    excluded = _without_order(query.excluded)
    if not excluded:
        return ranked
    # NOT in the filter is not heeded beside a query (Lance 13): its index says "at most these".
    refused = [(Occur.MUST_NOT, _match(*_tokens(clause))) for clause in excluded]
    return BooleanQuery([(Occur.SHOULD, ranked), *refused])


def required_sql(query: WordQuery, where: Filter | None, *, indexed: bool = True) -> str | None:
    """Return what every hit fulfils, as SQL; a phrase as all of its lexemes, in any order.

    Not `indexed`, the texts are read.
    """
    parts = [] if where is None else [lance_sql(where, ("flags",))]
    parts += [
        "(" + " OR ".join(_contains(clause, indexed) for clause in either) + ")"
        for either in query.required
    ]
    if not query.terms:
        excluded = _without_order(query.excluded)
        parts += [f"NOT {_contains(clause, indexed)}" for clause in excluded]
    return " AND ".join(parts) or None


def _repeat(terms: Iterable[Term]) -> str:
    """Return terms as a text that has each so often as its share has steps.

    Lance adds the score of a word for each time that a query has it, and finds the best exactly
    however often that is. A BooleanQuery is as exact, but scores every document that matches.
    """
    return " ".join(
        " ".join([encode_lexeme(term.lexeme)] * max(1, round(term.share / SHARE_STEP)))
        for term in terms
    )


def _without_order(clauses: Sequence[Clause]) -> list[Clause]:
    """Return what can be excluded by its tokens: a phrase would exclude too much without order."""
    return [clause for clause in clauses if not isinstance(clause, Phrase) or _is_word(clause)]


def _is_word(phrase: Phrase) -> bool:
    return len(phrase.lexemes) == 1


def _tokens(clause: Clause) -> tuple[str, str]:
    """Return the column that a clause is about, and the tokens that it wants there."""
    if isinstance(clause, Prefix):
        return "prefixes", encode_prefix(clause.text)
    if isinstance(clause, Phrase):
        return "lexemes", encode_lexemes(clause.lexemes)
    return "lexemes", encode_lexeme(clause)


def _contains(clause: Clause, indexed: bool) -> str:
    column, tokens = _tokens(clause)
    contains = f"contains_tokens({column}, {lance_literal(tokens)})"
    return contains if indexed else f"({contains} IS TRUE)"


def _match(column: str, tokens: str, boost: float = 1.0) -> MatchQuery:
    return MatchQuery(tokens, column, boost=boost)  # type: ignore[call-arg]
