"""A query in the lexemes of each language: the terms that rank, and the required conditions.

Words of a query are cut in the same way as those of messages. PostgreSQL stems them with the text
search configuration of each list. The conditions have two forms: a `WordQuery` for the word index,
which may find too much, and a tsquery with which PostgreSQL verifies. Both use quoted lexemes, so
that nothing that a user types reaches PostgreSQL as an operator.

Rare terms weigh more, by the inverse document frequency of BM25 (Robertson, Zaragoza 2009):

    weight = share * ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages contain the lexeme
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import psycopg

from mail_assets.postgres.statements import Pending, statement
from mail_assets.search.language.expression import Clause, Text
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.lexemes import TextMatch, match_texts, words_of_texts
from mail_assets.tables.search_vectors import ADDRESS, Stems, stem_reader
from mail_assets.text.identifiers import find_names
from mail_assets.text.words import clean_query_text, find_words, name_before_number
from mail_assets.words.index import EXACT_PREFIX, Phrase, Prefix, Term, WordQuery
from mail_assets.words.index import Clause as WordClause

#: An identifier weighs as much as two words, each of its pieces as much as a quarter of one. So a
#: message with `harbor_lease` comes before those with "the harbor" and "the lease".
IDENTIFIER_SHARE, PIECE_SHARE = 2.0, 0.25
#: Most words of a query that is also searched in mail addresses.
FEW_WORDS = 2
#: Most terms that are searched, the heaviest ones; they find a pasted page with hundreds of terms.
MAX_TERMS = 64
#: Messages that are sampled for statistics before the first ANALYZE.
SAMPLED = 1_000
#: How many times rarer than the last of the 1,000 commonest words all other words count.
RARER = 10


class ParsedQuery(NamedTuple):
    """The text that ranks, split into words and names.

    - `words`: words outside names, in normal form, including words joined as in prose
      (`read-only`); `joined` has these as written.
    - `identifiers`: names as written, and the file name of a path.
    - `identifier_parts`: lexemes of the parts of names.
    - `pieces`: words of names, which weigh less; the letters of `C++` are none.
    - `in_addresses`: words of mail addresses.
    """

    words: list[str]
    joined: list[str]
    identifiers: list[str]
    identifier_parts: list[str]
    pieces: list[str]
    in_addresses: list[str]


def take_apart(text: str) -> ParsedQuery:
    """Split the text of a query into words and names."""
    clean = clean_query_text(text)
    found = [*find_names(clean)]
    names = [name for name in found if not name.is_prose]
    spans = [(name.start, name.end) for name in names]
    signed = [(name.start, name.end) for name in names if name.is_signed]
    words, pieces, in_addresses = dict[str, None](), dict[str, None](), dict[str, None]()
    for word in find_words(clean):
        if word.in_address:
            in_addresses[word.text] = None
        elif any(start <= word.start < end for start, end in spans):
            is_piece = not (word.text.isdigit() or any(a <= word.start < b for a, b in signed))
            pieces |= {word.text: None} if is_piece else {}
        else:
            words[word.text] = None
            less = name_before_number(word.text)
            pieces |= dict.fromkeys(form for form in word.forms if form not in less)
    wholes = {name.whole for name in names}
    files = {name.whole.rpartition("/")[2] for name in names} & {x for n in names for x in n.parts}
    parts = {part for name in names for part in name.parts} - wholes - files
    return ParsedQuery(
        [*words],
        sorted({name.whole for name in found if name.is_prose} - wholes),
        sorted(wholes | files),
        sorted(parts),
        [piece for piece in pieces if piece not in words],
        [*in_addresses],
    )


class LanguageQuery(NamedTuple):
    """A query in the lexemes of one language, for the lists in that language.

    - `words`: the query for the word index. `words_say_all`: that index checks all conditions on
      texts. `finds_more`: it also finds messages without the required words.
    - `required`: a tsquery that every hit matches; empty if nothing is required. `matches` has the
      conditions of single texts.
    - `lexemes`: lexemes of the words; `pieces`: lexemes of the identifiers' pieces.
    """

    language: str
    lists: list[str]
    words: WordQuery
    required: str
    matches: Mapping[Text, TextMatch]
    lexemes: list[str]
    pieces: list[str]
    words_say_all: bool = True
    finds_more: bool = False


class Query(NamedTuple):
    """A query as text, split into words and names, and in the lexemes of each language.

    `ranks`: hits are ranked, not listed by date. `shows_addresses`: parts of mail addresses are
    searched too.
    """

    text: str
    parsed: ParsedQuery
    by_language: list[LanguageQuery]
    ranks: bool
    shows_addresses: bool = True


def ask_query(
    connection: psycopg.Connection,
    request: ParsedRequest,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> Pending[Query]:
    """Ask PostgreSQL for the lexemes of a query for some lists; the answer is the Query.

    `languages` maps lists to text search configurations.
    """
    parsed = take_apart(request.text)
    by_language: dict[str, list[str]] = {}
    for name in sorted(lists):
        by_language.setdefault(languages[name], []).append(name)
    wanted = {*parsed.words, *parsed.pieces, *words_of_texts(request.texts)}
    shows_addresses = not request.request.names_only

    def build(stems: Mapping[str, Stems]) -> Query:
        matches = match_texts(request.texts, stems, shows_addresses=shows_addresses)
        queries = [
            _build_query(request, parsed, _Reading(one, by_language[one], read, matches[one]))
            for one, read in stems.items()
        ]
        required = [
            one
            for one in queries
            if one.words.terms or any(match.tsquery for match in one.matches.values())
        ]
        return Query(request.text, parsed, required, request.ranks, shows_addresses)

    return stem_reader(connection).ask(sorted(by_language), wanted).then(build)


class _Reading(NamedTuple):
    """The texts of a query in one language."""

    language: str
    lists: list[str]
    stems: Stems
    matches: Mapping[Text, TextMatch]


def _build_query(request: ParsedRequest, parsed: ParsedQuery, read: _Reading) -> LanguageQuery:
    plain, pieces = _stem(parsed.words, read.stems), _stem(parsed.pieces, read.stems)
    conditions = _word_conditions(request.clauses, read.matches)
    shows_addresses = not request.request.names_only
    return LanguageQuery(
        language=read.language,
        lists=read.lists,
        words=WordQuery(
            _terms(parsed, plain, pieces, shows_addresses) if request.ranks else (),
            conditions.required,
            conditions.excluded,
        ),
        required=_tsquery(request.clauses, read.matches),
        matches=read.matches,
        lexemes=plain,
        pieces=pieces,
        words_say_all=conditions.are_all,
        finds_more=conditions.finds_more,
    )


def _stem(words: Iterable[str], stems: Stems) -> list[str]:
    """Return the lexemes of words, without stop words."""
    return [*dict.fromkeys(lexeme for word in words for lexeme in stems.get(word, (word,)))]


def _terms(
    parsed: ParsedQuery, plain: list[str], pieces: list[str], shows_addresses: bool
) -> tuple[Term, ...]:
    """Return the terms of a query; short queries are also searched in addresses."""
    shares = dict.fromkeys([*pieces, *parsed.identifier_parts], PIECE_SHARE)
    shares |= dict.fromkeys([*plain, *parsed.joined], 1.0)
    shares |= dict.fromkeys(parsed.identifiers, IDENTIFIER_SHARE)
    if not shows_addresses:
        return tuple(Term(lexeme, share) for lexeme, share in shares.items() if "@" not in lexeme)
    few = [*parsed.words, *parsed.pieces] if len(parsed.words) <= FEW_WORDS else []
    in_addresses = (f"{ADDRESS}{word}" for word in [*few, *parsed.in_addresses])
    shares |= dict.fromkeys(in_addresses, PIECE_SHARE)
    return tuple(Term(lexeme, share) for lexeme, share in shares.items())


class _WordConditions(NamedTuple):
    """The conditions that a word index can check; `are_all`: there are no others.

    A phrase counts as checked, although a stop word may be between its words; that is rare.
    `finds_more`: the index also finds messages that do not meet `required`.
    """

    required: tuple[tuple[WordClause, ...], ...] = ()
    excluded: tuple[WordClause, ...] = ()
    are_all: bool = True
    finds_more: bool = False


def _word_conditions(
    clauses: Iterable[Clause], matches: Mapping[Text, TextMatch]
) -> _WordConditions:
    found = [_conditions_of(clause, matches) for clause in clauses]
    return _WordConditions(
        tuple(chain.from_iterable(one.required for one in found)),
        tuple(dict.fromkeys(chain.from_iterable(one.excluded for one in found))),
        all(one.are_all for one in found),
        any(one.finds_more for one in found),
    )


def _conditions_of(clause: Clause, matches: Mapping[Text, TextMatch]) -> _WordConditions:
    """Return the conditions of one clause that a word index can check.

    Only PostgreSQL checks exclusions for which the index would exclude too much: a phrase without
    its stop words, and a prefix that the index may shorten.
    """
    texts = [matches[one.leaf] for one in clause if isinstance(one.leaf, Text)]
    if len(texts) < len(clause) or not all(text.clauses for text in texts):
        return _WordConditions(are_all=not any(text.tsquery for text in texts))
    words = tuple(dict.fromkeys(word for text in texts for word in text.clauses))
    exact = all(text.exact for text in texts) and all(map(_is_exact, words))
    if not any(one.negated for one in clause):
        return _WordConditions(required=(words,), are_all=exact, finds_more=not exact)
    if len(clause) > 1 or not texts[0].exact:
        return _WordConditions(are_all=False)
    single = [word for word in words if not isinstance(word, Phrase)]
    return _WordConditions(
        excluded=tuple(filter(_is_exact, single)), are_all=exact and len(single) == len(words)
    )


def _is_exact(clause: WordClause) -> bool:
    return not isinstance(clause, Prefix) or len(clause.text) <= EXACT_PREFIX


def _tsquery(clauses: Iterable[Clause], matches: Mapping[Text, TextMatch]) -> str:
    parts = []
    for clause in clauses:
        texts = [
            (matches[one.leaf].tsquery, one.negated) for one in clause if isinstance(one.leaf, Text)
        ]
        if len(texts) == len(clause) and all(tsquery for tsquery, _ in texts):
            either = [f"!({tsquery})" if negated else tsquery for tsquery, negated in texts]
            parts.append(f"({' | '.join(either)})")
    return " & ".join(parts)


class Frequencies:
    """The number of messages, and about how many of them have a lexeme.

    Lexemes outside the statistics are rarer than all in them, and count as RARER times as rare as
    the rarest. The estimates scale scores; they do not change the order.
    """

    def __init__(self, messages: int, shares: Mapping[str, float]) -> None:
        self.messages = messages
        self._shares = shares
        rarest = min(shares.values(), default=0.0)
        self._unknown = rarest / RARER

    def names(self, lexeme: str) -> bool:
        """Return whether a lexeme is in the statistics: it is one of the commonest."""
        return lexeme in self._shares

    def count(self, lexeme: str) -> int:
        """Estimate how many messages have a lexeme."""
        return round(self._shares.get(lexeme, self._unknown) * self.messages)


class FrequencyReader:
    """Reads the statistics over one connection; reads them again after each ANALYZE."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._kept: tuple[int, Frequencies] | None = None

    def ask(self) -> Pending[Frequencies]:
        """Ask for the number of messages; if it changed, the statistics are read again."""
        return Pending(self._connection.execute(statement("search", "corpus")).fetchone).then(
            lambda row: self._keep(int(row[0]) if row else 0)
        )

    def _keep(self, messages: int) -> Frequencies:
        if self._kept is None or self._kept[0] != messages:
            self._kept = messages, self._read(messages)
        return self._kept[1]

    def _read(self, messages: int) -> Frequencies:
        if messages > 0:
            rows = self._connection.execute(statement("search", "word_shares")).fetchall()
            if rows:
                return Frequencies(messages, dict(rows))
        parameters = {"most": SAMPLED}
        sampled = self._connection.execute(statement("search", "sampled_shares"), parameters)
        return Frequencies(max(messages, SAMPLED), dict(sampled.fetchall()))


@dataclass(frozen=True)
class WeighedTerm:
    """A lexeme of a query: estimated number of messages with it, share and weight.

    `is_named`: it is in the statistics; other lexemes are only known to be rarer.
    """

    lexeme: str
    messages: int
    weight: float
    share: float = 1.0
    is_named: bool = True

    def explain(self) -> dict[str, Any]:
        """Return the term for JSON; the number of messages is null if it is unknown."""
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


def count_candidates(query: LanguageQuery, frequencies: Frequencies) -> float:
    """Estimate at most how many messages have the required words, in any order.

    Infinity if the word index cannot check any of them, or only a prefix.
    """
    return min(
        (sum(_count(one, frequencies) for one in either) for either in query.words.required),
        default=math.inf,
    )


def _count(clause: WordClause, frequencies: Frequencies) -> float:
    if isinstance(clause, Prefix):
        return math.inf
    lexemes = clause.lexemes if isinstance(clause, Phrase) else (clause,)
    return min(frequencies.count(lexeme) for lexeme in lexemes)


def _weigh(lexeme: str, share: float, frequencies: Frequencies) -> WeighedTerm:
    messages = frequencies.count(lexeme)
    others = max(frequencies.messages - messages, 0)
    rarity = math.log(1 + (others + 0.5) / (messages + 0.5))
    return WeighedTerm(lexeme, messages, share * rarity, share, frequencies.names(lexeme))


@dataclass(frozen=True)
class LanguageTerms:
    """A query in the stems of one language, and its weighed terms."""

    query: LanguageQuery
    terms: list[WeighedTerm]

    @property
    def words(self) -> int:
        """The number of terms; words in addresses are counted only if the text has no others."""
        return sum(not term.lexeme.startswith(ADDRESS) for term in self.terms) or len(self.terms)

    @property
    def weight(self) -> float:
        """The weight of the terms that `words` counts."""
        plain = sum(term.weight for term in self.terms if not term.lexeme.startswith(ADDRESS))
        return plain or sum(term.weight for term in self.terms)


def weigh_query(query: Query, frequencies: Frequencies) -> list[LanguageTerms]:
    """Return the terms of a query in each of its languages."""
    return [LanguageTerms(one, weigh_terms(one, frequencies)) for one in query.by_language]


def measure_coverage(languages: Iterable[LanguageTerms], lexemes: frozenset[str]) -> float:
    """Return the greatest share of a query's weight that the lexemes have in any language."""
    shares = [
        min(1.0, sum(term.weight for term in one.terms if term.lexeme in lexemes) / one.weight)
        for one in languages
        if one.weight
    ]
    return round(max(shares, default=0.0), 4)


def list_names(query: Query) -> list[str]:
    """Return the lexemes of the names in a query of names only; otherwise none.

    A single word counts as a name: a query `relfilenode` wants the messages that have the word.
    """
    parsed = query.parsed
    named = parsed.identifiers and not {*parsed.words} - {"or"}
    if not named and len(query.text.split()) != 1:
        return []
    beginnings = (one for one in parsed.identifier_parts if one.endswith("."))
    names = {*parsed.identifiers, *beginnings}
    if not named:
        names.update(lexeme for one in query.by_language for lexeme in one.lexemes)
    return sorted(names)
