"""A query in the lexemes of each language: what ranks, and what every hit must have.

PostgreSQL makes the lexemes, by the text search configuration of each list. What is required is
said twice: for an index of words (`WordQuery`), which may find too much, and as a tsquery by which
PostgreSQL verifies. Both are put together of quoted lexemes: nothing that a user types reaches
PostgreSQL as an operator.

[query_text] The text of a query that ranks, taken apart into words and names.

[frequencies] How many messages have a word, from PostgreSQL's statistics: read once after each ANALYZE.

[terms] The lexemes of a query and how much each weighs: rare ones weigh more.

    weight = share * ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages contain the lexeme

which is the inverse document frequency of BM25 (Robertson, Zaragoza 2009).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.language.expression import Clause, Text
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.lexemes import Lexemes, TextMatch, ask_lexemes, match_texts
from mail_assets.text.identifiers import find_identifiers
from mail_assets.words.query import EXACT_PREFIX, Phrase, Prefix, Term, WordQuery
from mail_assets.words.query import Clause as WordClause


class ParsedQuery(NamedTuple):
    """The text that ranks, taken apart.

    `plain` is without identifiers. `identifiers` are names as they are written, and the file of a
    path; `identifier_parts` are their pieces, which say less.
    """

    plain: str
    identifiers: list[str]
    identifier_parts: list[str]


def take_apart(text: str) -> ParsedQuery:
    """Take the text of a query apart into words and names."""
    names = find_identifiers(text)
    parts = {part for name in names for part in _identifier_parts(name)}
    identifiers = [name for name in names if name not in parts]
    return ParsedQuery(_without(text, identifiers), identifiers, sorted(parts))


def _identifier_parts(name: str) -> set[str]:
    """Return the pieces of an identifier, except the last component of a path."""
    return {*find_identifiers(name)} - {name, name.rpartition("/")[2]}


def _without(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it, longest first, in any case."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    return text


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


#: Messages that are looked at where there was no ANALYZE yet.
SAMPLED = 1_000
#: A word that is not among the commonest 1,000 stands in far fewer messages than the last of them.
RARER = 10


class Frequencies:
    """The number of messages, and how many of them have a lexeme.

    A lexeme that the statistics do not name is rarer than those that they name: it is taken for
    RARER times as rare as the rarest. Both are estimates, which scale scores and rank nothing.
    """

    def __init__(self, messages: int, shares: Mapping[str, float]) -> None:
        self.messages = messages
        self._shares = shares
        rarest = min(shares.values(), default=0.0)
        self._unknown = rarest / RARER

    def names(self, lexeme: str) -> bool:
        """Say whether the statistics name a lexeme: it is among the commonest."""
        return lexeme in self._shares

    def count(self, lexeme: str) -> int:
        """Return how many messages have a lexeme, about."""
        return round(self._shares.get(lexeme, self._unknown) * self.messages)


class FrequencyReader:
    """Reads the statistics again when they are others; for one connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._read: tuple[int, Frequencies] | None = None

    def ask(self) -> Callable[[], Frequencies]:
        """Send the question whether the statistics are others; return what reads the answer."""
        asked = self._connection.execute(statement("frequencies", "corpus"))
        return lambda: self._answer(int((asked.fetchone() or (0,))[0]))

    def _answer(self, messages: int) -> Frequencies:
        if self._read is None or self._read[0] != messages:
            self._read = messages, self._read_frequencies(messages)
        return self._read[1]

    def _read_frequencies(self, messages: int) -> Frequencies:
        if messages > 0:
            rows = self._connection.execute(statement("frequencies", "word_shares")).fetchall()
            if rows:
                return Frequencies(messages, dict(rows))
        parameters = {"most": SAMPLED}
        sampled = self._connection.execute(statement("frequencies", "sampled_shares"), parameters)
        return Frequencies(max(messages, SAMPLED), dict(sampled.fetchall()))


#: Terms that are searched for, the heaviest; a pasted page has hundreds, and is found by these.
MAX_TERMS = 64


@dataclass(frozen=True)
class WeighedTerm:
    """A lexeme of a query: about how many messages contain it, its share and its weight.

    `is_named`: the statistics name it; of others is only known that they are rarer.
    """

    lexeme: str
    messages: int
    weight: float
    share: float = 1.0
    is_named: bool = True

    def explain(self) -> dict[str, Any]:
        """Return it as JSON; the number of messages is null where it is not known."""
        known = self.messages if self.is_named else None
        return {
            "lexeme": self.lexeme,
            "messages": known,
            "weight": self.weight,
            "share": self.share,
        }


def weigh_terms(query: LanguageQuery, frequencies: Frequencies) -> list[WeighedTerm]:
    """Return the terms of a query in one language, rarest first."""
    terms = [_weigh(one.lexeme, one.share, frequencies) for one in query.words.terms]
    heaviest = sorted(terms, key=lambda term: (-term.weight, term.lexeme))[:MAX_TERMS]
    return sorted(heaviest, key=lambda term: (term.messages, term.lexeme))


def _weigh(lexeme: str, share: float, frequencies: Frequencies) -> WeighedTerm:
    messages = frequencies.count(lexeme)
    others = max(frequencies.messages - messages, 0)
    rarity = math.log(1 + (others + 0.5) / (messages + 0.5))
    return WeighedTerm(lexeme, messages, share * rarity, share, frequencies.names(lexeme))
