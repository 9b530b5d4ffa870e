"""A query as words: what full text searches for, what every hit must contain, and what none may.

`"quoted words"` are a phrase that every hit contains; `or` separates alternatives; `-word` and
`-"a phrase"` must be absent. Everything else is a word that may occur, also `-t` and
`--schema-only`, which are options of some command: no input is an error, and none reaches
Postgres as an operator.
https://www.postgresql.org/docs/18/textsearch-controls.html (websearch_to_tsquery)
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.text.identifiers import find_identifiers

_EXCLUDED = re.compile(r"(?<!\S)-(\"[^\"]*\"|\w\w\S*)")
_PHRASE = re.compile(r'"[^"]*"')
_OR = re.compile(r"(?i)(?<!\S)or(?!\S)")
#: websearch_to_tsquery takes each of them for a "not", also the dash of "a - b".
_DASHES = re.compile(r"(?<![^\W_])-+")


class ParsedQuery(NamedTuple):
    """A query, taken apart.

    `included` is the text without its excluded parts, `plain` also without identifiers.
    `phrases` are those that every hit contains; any of them, where the query has an `or`.
    `excluded` is an alternative of words and phrases. `identifiers` are names as they are written,
    and the file of a path; `identifier_parts` are their pieces, which say less.
    """

    included: str
    plain: str
    phrases: str
    excluded: str
    identifiers: list[str]
    identifier_parts: list[str]


class LanguageQuery(NamedTuple):
    """A query in the stems of one language, for the lists that are written in it.

    `narrow` is a tsquery: all words, or an identifier. `required` is a tsquery that every hit
    matches, empty where nothing is required. `lexemes` are the stems of the plain text, `pieces`
    those of the identifiers.
    """

    language: str
    lists: list[str]
    narrow: str
    required: str
    lexemes: list[str]
    pieces: list[str]


class Query(NamedTuple):
    """A query as it was typed, taken apart, and in the stems of each language."""

    text: str
    parsed: ParsedQuery
    by_language: list[LanguageQuery]


def read_query(
    connection: psycopg.Connection, text: str, languages: Mapping[str, str], lists: Iterable[str]
) -> Query:
    """Return a query for some lists; `languages` maps lists to text search configurations."""
    parsed = parse_query(text)
    return Query(text, parsed, stem_query(connection, parsed, languages, lists))


def parse_query(text: str) -> ParsedQuery:
    """Take a query apart. Identifiers in excluded parts are ignored."""
    excluded = [part.replace("-", " ") for part in _EXCLUDED.findall(text)]
    included = _EXCLUDED.sub(" ", text)
    names = find_identifiers(included)
    parts = {part for name in names for part in _identifier_parts(name)}
    identifiers = [name for name in names if name not in parts]
    phrases = _PHRASE.findall(included)
    return ParsedQuery(
        included=_DASHES.sub(" ", included),
        plain=_without(included, identifiers),
        phrases=(" or " if _OR.search(included) else " ").join(phrases),
        excluded=" or ".join(excluded),
        identifiers=identifiers,
        identifier_parts=sorted(parts),
    )


def strip_operators(text: str) -> str:
    """Return the query for the encoder: without operators, or unchanged if nothing is left."""
    return " ".join(_EXCLUDED.sub(" ", text).replace('"', " ").split()) or text


def stem_query(
    connection: psycopg.Connection,
    parsed: ParsedQuery,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> list[LanguageQuery]:
    """Return the query in the stems of each language of the lists.

    A language in which nothing is left, only stop words and punctuation, is left out.
    """
    by_language: dict[str, list[str]] = {}
    for name in sorted(lists):
        by_language.setdefault(languages[name], []).append(name)
    queries = []
    for language, names in sorted(by_language.items()):
        row = connection.execute(
            statement("search", "question"),
            {
                "language": language,
                "words": parsed.included,
                "phrases": parsed.phrases,
                "unwanted": parsed.excluded,
                "plain": parsed.plain,
                "names": " ".join(parsed.identifiers),
                "exact": match_any(parsed.identifiers),
            },
        ).fetchone()
        if row:
            queries.append(LanguageQuery(language, names, *row))
    return queries


def match_any(lexemes: Iterable[str]) -> str:
    """Return a tsquery for any of these; quote_literal's E'' is not understood in one."""
    doubled = (lexeme.replace("\\", "\\\\").replace("'", "''") for lexeme in lexemes)
    return " | ".join(f"'{lexeme}'" for lexeme in doubled)


def _identifier_parts(name: str) -> set[str]:
    """Return the pieces of an identifier, except the last component of a path."""
    return {*find_identifiers(name)} - {name, name.rpartition("/")[2]}


def _without(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it, longest first, in any case."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    return text
