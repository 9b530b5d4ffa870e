"""A query as words: what full text looks for, what it must not hold, which names are exact.

`"quoted words"` are a phrase, `or` stands between alternatives, `-word` and `-"a phrase"` must
be absent. Everything else is a word, also `-t` and `--schema-only`, which are options of some
command: no input is an error, and none reaches Postgres as an operator.
https://www.postgresql.org/docs/18/textsearch-controls.html (websearch_to_tsquery)
What does not live here: matching and ranking (legs.py).
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.store.statements import statement
from mail_assets.text.identifiers import query_identifiers

_UNWANTED = re.compile(r"(?<!\S)-(\"[^\"]*\"|\w\w\S*)")
#: websearch_to_tsquery takes each of them for a "not", also the dash of "a - b".
_DASHES = re.compile(r"(?<![^\W_])-+")


class Words(NamedTuple):
    """A query taken apart; `unwanted` is an alternative of words and phrases.

    `identifiers` are the names as they are written, and the file of a path; `parts` are the
    pieces of them, which say less.
    """

    wanted: str
    unwanted: str
    identifiers: list[str]
    parts: list[str]


class Question(NamedTuple):
    """A query in the stems of one language, put to the lists that are written in it.

    `narrow` and `wide` are tsqueries: all words or an identifier; any word, identifier or part.
    """

    language: str
    lists: list[str]
    narrow: str
    wide: str


def read_words(query: str) -> Words:
    """Take a query apart. Identifiers of unwanted parts do not count."""
    unwanted = [part.replace("-", " ") for part in _UNWANTED.findall(query)]
    wanted = _UNWANTED.sub(" ", query)
    names = query_identifiers(wanted)
    parts = {part for name in names for part in _parts(name)}
    return Words(
        wanted=_DASHES.sub(" ", wanted),
        unwanted=" or ".join(unwanted),
        identifiers=[name for name in names if name not in parts],
        parts=sorted(parts),
    )


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
                "unwanted": words.unwanted,
                "exact": _any(words.identifiers),
                "parts": _any(words.parts),
            },
        ).fetchone()
        if row:
            questions.append(Question(language, names, *row))
    return questions


def _parts(name: str) -> set[str]:
    """Return the pieces of an identifier, the last component of a path not counted."""
    return {*query_identifiers(name)} - {name, name.rpartition("/")[2]}


def _any(lexemes: Iterable[str]) -> str:
    """Return a tsquery for any of these; quote_literal's E'' is not understood in one."""
    doubled = (lexeme.replace("\\", "\\\\").replace("'", "''") for lexeme in lexemes)
    return " | ".join(f"'{lexeme}'" for lexeme in doubled)
