"""A query in the lexemes of each language: what ranks, and what every hit must have.

PostgreSQL makes the lexemes, by the text search configuration of each list. What is required is
said twice: for an index of words (`WordQuery`), which may find too much, and as a tsquery by which
PostgreSQL verifies. Both are put together of quoted lexemes: nothing that a user types reaches
PostgreSQL as an operator.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import psycopg

from mail_assets.search.expression import Clause, Text
from mail_assets.search.lexemes import Lexemes, TextMatch, ask_lexemes, match_texts
from mail_assets.search.query_text import ParsedQuery, take_apart
from mail_assets.search.syntax import ParsedRequest
from mail_assets.words.query import EXACT_PREFIX, Phrase, Prefix, Term, WordQuery
from mail_assets.words.query import Clause as WordClause

#: The share of an identifier is that of two words, and of each of its pieces a quarter: a message
#: that contains `harbor_lease` comes before those that contain the harbor and the lease.
IDENTIFIER_SHARE, PIECE_SHARE = 2.0, 0.25


class LanguageQuery(NamedTuple):
    """A query in the lexemes of one language, for the lists that are written in it.

    `words` is the query for an index of words. `required` is a tsquery that every hit matches,
    empty where nothing is required; `matches` say how it matches its single texts. `lexemes` are
    those of the plain text, `pieces` those of the identifiers. `words_say_all` says that an index
    of words checks all that is required.
    """

    language: str
    lists: list[str]
    words: WordQuery
    required: str
    matches: Mapping[Text, TextMatch]
    lexemes: list[str]
    pieces: list[str]
    words_say_all: bool = True


class Query(NamedTuple):
    """A query as text, taken apart, and in the lexemes of each language.

    `ranks` is false where the newest come first: only conditions are asked, or sort is date.
    `patterned` are the clauses that have a phrase with stop words: no tsquery requires them.
    """

    text: str
    parsed: ParsedQuery
    by_language: list[LanguageQuery]
    ranks: bool
    patterned: tuple[Clause, ...] = ()


def ask_query(
    connection: psycopg.Connection,
    request: ParsedRequest,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> Callable[[], Query]:
    """Ask for the lexemes of a query for some lists; return what makes the query of the answer.

    `languages` maps lists to text search configurations.
    """
    parsed = take_apart(request.text)
    by_language: dict[str, list[str]] = {}
    for name in sorted(lists):
        by_language.setdefault(languages[name], []).append(name)
    own = (parsed.plain, " ".join(parsed.identifiers))
    texts = [*own, *(one.text for one in request.texts)]
    answers = {one: ask_lexemes(connection, one, texts) for one in sorted(by_language)}

    def build() -> Query:
        read = {language: answer() for language, answer in answers.items()}
        matches = match_texts(
            request.texts, {language: lexemes[len(own) :] for language, lexemes in read.items()}
        )
        patterned = tuple(one for one in request.clauses if _has_pattern(one, matches.values()))
        queries = [
            _build_query(
                request, parsed, _Reading(one, by_language[one], lexemes, matches[one], patterned)
            )
            for one, lexemes in read.items()
        ]
        asked = [
            one
            for one in queries
            if one.words.terms or any(match.tsquery for match in one.matches.values())
        ]
        return Query(request.text, parsed, asked, request.ranks, patterned)

    return build


class _Reading(NamedTuple):
    """What one language makes of a query: of its plain text and its names first."""

    language: str
    lists: list[str]
    lexemes: list[Lexemes]
    matches: Mapping[Text, TextMatch]
    patterned: tuple[Clause, ...]


def _build_query(request: ParsedRequest, parsed: ParsedQuery, read: _Reading) -> LanguageQuery:
    plain, names = (list(dict.fromkeys(one.lexemes)) for one in read.lexemes[:2])
    conditions = _word_conditions(request.clauses, read.matches)
    return LanguageQuery(
        language=read.language,
        lists=read.lists,
        words=WordQuery(
            _terms(parsed, plain, names) if request.ranks else (),
            conditions.required,
            conditions.excluded,
        ),
        required=_tsquery([x for x in request.clauses if x not in read.patterned], read.matches),
        matches=read.matches,
        lexemes=plain,
        pieces=names,
        words_say_all=conditions.are_all,
    )


def _terms(parsed: ParsedQuery, plain: list[str], names: list[str]) -> tuple[Term, ...]:
    shares = dict.fromkeys([*names, *parsed.identifier_parts], PIECE_SHARE)
    shares |= dict.fromkeys(plain, 1.0)
    shares |= dict.fromkeys(parsed.identifiers, IDENTIFIER_SHARE)
    return tuple(Term(lexeme, share) for lexeme, share in shares.items())


class _WordConditions(NamedTuple):
    """What an index of words can check: what is required, what is excluded, and whether it is all.

    A phrase counts as checked: what has a stop word between its words is found too, which is rare.
    """

    required: tuple[tuple[WordClause, ...], ...] = ()
    excluded: tuple[WordClause, ...] = ()
    are_all: bool = True


def _word_conditions(
    clauses: Iterable[Clause], matches: Mapping[Text, TextMatch]
) -> _WordConditions:
    """Return what an index of words can check of a query."""
    found = [_conditions_of(clause, matches) for clause in clauses]
    return _WordConditions(
        tuple(chain.from_iterable(one.required for one in found)),
        tuple(dict.fromkeys(chain.from_iterable(one.excluded for one in found))),
        all(one.are_all for one in found),
    )


def _conditions_of(clause: Clause, matches: Mapping[Text, TextMatch]) -> _WordConditions:
    """Return what an index of words can check of one clause.

    What would exclude too much is left to PostgreSQL: a phrase without its stop words, and a prefix
    of which an index may compare the beginning alone.
    """
    texts = [matches[one.leaf] for one in clause if isinstance(one.leaf, Text)]
    if len(texts) < len(clause) or not all(text.clauses for text in texts):
        return _WordConditions(are_all=not any(text.tsquery for text in texts))
    words = tuple(dict.fromkeys(word for text in texts for word in text.clauses))
    exact = not any(text.pattern for text in texts) and all(map(_is_exact, words))
    if not any(one.negated for one in clause):
        return _WordConditions(required=(words,), are_all=exact)
    if len(clause) > 1 or texts[0].pattern:
        return _WordConditions(are_all=False)
    single = [word for word in words if not isinstance(word, Phrase)]
    return _WordConditions(
        excluded=tuple(filter(_is_exact, single)), are_all=exact and len(single) == len(words)
    )


def _is_exact(clause: WordClause) -> bool:
    """Say whether an index of words compares all of a clause."""
    return not isinstance(clause, Prefix) or len(clause.text) <= EXACT_PREFIX


def _tsquery(clauses: Iterable[Clause], matches: Mapping[Text, TextMatch]) -> str:
    """Return the clauses that are of texts alone as a tsquery."""
    parts = []
    for clause in clauses:
        texts = [
            (matches[one.leaf].tsquery, one.negated) for one in clause if isinstance(one.leaf, Text)
        ]
        if len(texts) == len(clause) and all(tsquery for tsquery, _ in texts):
            either = [f"!({tsquery})" if negated else tsquery for tsquery, negated in texts]
            parts.append(f"({' | '.join(either)})")
    return " & ".join(parts)


def _has_pattern(clause: Clause, by_language: Iterable[Mapping[Text, TextMatch]]) -> bool:
    """Say whether a clause of texts alone has one that a pattern finds in some language."""
    texts = [one.leaf for one in clause if isinstance(one.leaf, Text)]
    found = (matches[text].pattern for matches in by_language for text in texts)
    return len(texts) == len(clause) and any(found)
