"""A query as words: what full text looks for, what must stand in a message, what must not.

`"quoted words"` are a phrase that every hit holds; `or` stands between alternatives, `-word`
and `-"a phrase"` must be absent. Everything else is a word that may be there, also `-t` and
`--schema-only`, which are options of some command: no input is an error, and none reaches
Postgres as an operator.
https://www.postgresql.org/docs/18/textsearch-controls.html (websearch_to_tsquery)
What does not live here: matching and ranking (fulltext.py).
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.text.identifiers import find_identifiers

_UNWANTED = re.compile(r"(?<!\S)-(\"[^\"]*\"|\w\w\S*)")
_PHRASE = re.compile(r'"[^"]*"')
_OR = re.compile(r"(?i)(?<!\S)or(?!\S)")
#: websearch_to_tsquery takes each of them for a "not", also the dash of "a - b".
_DASHES = re.compile(r"(?<![^\W_])-+")


class Words(NamedTuple):
    """A query taken apart.

    `unwanted` is an alternative of words and phrases; `phrases` are those that must be there,
    all of them, or any where the query has an `or`. `identifiers` are the names as they are
    written, and the file of a path; `parts` are the pieces of them, which say less; `plain` is
    the text without names.
    """

    wanted: str
    plain: str
    phrases: str
    unwanted: str
    identifiers: list[str]
    parts: list[str]


class Question(NamedTuple):
    """A query in the stems of one language, put to the lists that are written in it.

    `narrow` is a tsquery: all words, or an identifier. `required` is one that every hit passes,
    empty where nothing is required. `lexemes` are the stems of the plain text, `pieces` those
    of the names in it.
    """

    language: str
    lists: list[str]
    narrow: str
    required: str
    lexemes: list[str]
    pieces: list[str]


def read_words(query: str) -> Words:
    """Take a query apart. Identifiers of unwanted parts do not count."""
    unwanted = [part.replace("-", " ") for part in _UNWANTED.findall(query)]
    wanted = _UNWANTED.sub(" ", query)
    names = find_identifiers(wanted)
    parts = {part for name in names for part in _parts(name)}
    identifiers = [name for name in names if name not in parts]
    phrases = _PHRASE.findall(wanted)
    return Words(
        wanted=_DASHES.sub(" ", wanted),
        plain=_without(wanted, identifiers),
        phrases=(" or " if _OR.search(wanted) else " ").join(phrases),
        unwanted=" or ".join(unwanted),
        identifiers=identifiers,
        parts=sorted(parts),
    )


def meaning_of(query: str) -> str:
    """Return what the model is to read: the query without operators, itself where they are all."""
    return " ".join(_UNWANTED.sub(" ", query).replace('"', " ").split()) or query


def ask(
    connection: psycopg.Connection, words: Words, languages: Mapping[str, str], lists: Iterable[str]
) -> list[Question]:
    """Return the questions that the words make, one a language of the lists.

    Nothing comes back for words that say nothing: stop words and punctuation.
    """
    by_language: dict[str, list[str]] = {}
    for name in sorted(lists):
        by_language.setdefault(languages[name], []).append(name)
    questions = []
    for language, names in sorted(by_language.items()):
        row = connection.execute(
            statement("search", "question"),
            {
                "language": language,
                "words": words.wanted,
                "phrases": words.phrases,
                "unwanted": words.unwanted,
                "plain": words.plain,
                "names": " ".join(words.identifiers),
                "exact": any_of(words.identifiers),
            },
        ).fetchone()
        if row:
            questions.append(Question(language, names, *row))
    return questions


def any_of(lexemes: Iterable[str]) -> str:
    """Return a tsquery for any of these; quote_literal's E'' is not understood in one."""
    doubled = (lexeme.replace("\\", "\\\\").replace("'", "''") for lexeme in lexemes)
    return " | ".join(f"'{lexeme}'" for lexeme in doubled)


def _parts(name: str) -> set[str]:
    """Return the pieces of an identifier, the last component of a path not counted."""
    return {*find_identifiers(name)} - {name, name.rpartition("/")[2]}


def _without(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it, longest first, whatever their case."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    return text
