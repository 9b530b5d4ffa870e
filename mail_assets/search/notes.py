"""Notes on an answer: what a person cannot see in its hits, in one line each, for every surface.

They say which phrases nothing holds, how far a list by date looked, which words of the query are in
no index or in no message, and which fields nobody meets. Those on the signs of the query
(language/notes.py) come before them.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.field_conditions import resolve_clause
from mail_assets.search.language.expression import Clause, Field, Text
from mail_assets.search.language.notes import MAX_NAMED, cut
from mail_assets.search.language.request import Mode, Sort
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.query import Query
from mail_assets.search.response import Hit
from mail_assets.search.retrieval import RankedMatches

_WORD = re.compile(r"\w+")
#: Fields of which a part is compared, with the words for it.
_PARTS = {"subject": "the subject", "to": "a receiver", "file": "the name of an attached file"}


def write_notes(
    connection: psycopg.Connection,
    asked: ParsedRequest,
    parsed: ParsedRequest,
    found: RankedMatches,
    hits: Sequence[Hit],
) -> tuple[str, ...]:
    """Return the notes; `asked` is the request, and `parsed` the one that found the hits."""
    notes = [*asked.notes]
    if parsed is not asked:
        named = name_phrases(asked.phrases)
        notes.append(f"Nothing was found that holds {named}: searched without quotes.")
    if found.looked_up and found.looked_up.query:
        notes += _note_words(parsed, found.looked_up.query, found.unknown, has_hits=bool(hits))
    if not hits:
        notes += _note_fields(connection, asked)
    if day := found.looked_back_to:
        seen, others = (f"from {day} on", "before")
        if asked.request.sort == Sort.oldest:
            seen, others = f"before {day}", "after"
        notes.append(f"Only messages {seen} were looked at: for others add {others}:{day}.")
    return tuple(dict.fromkeys(notes))


def name_phrases(phrases: Sequence[str]) -> str:
    """Return phrases in quotes, long ones and long lists cut: "one" and "two" and 3 more."""
    shown = [f'"{cut(one)}"' for one in phrases]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return " and ".join(shown[:MAX_NAMED]) + more


def _note_words(
    parsed: ParsedRequest, query: Query, unknown: Collection[str], *, has_hits: bool
) -> Iterator[str]:
    """Yield the notes on words that are in no index, or in no message."""
    if parsed.request.mode != Mode.semantic and parsed.text and not query.by_language:
        kind = "very common words" if any(map(str.isalnum, parsed.text)) else "signs"
        if not query.ranks:
            outcome = "they were left out"
        else:
            outcome = "hits are found by meaning alone" if has_hits else "add a rarer word"
        yield f"The index of words has no {kind}, as in {cut(parsed.text)}: {outcome}."
        return
    left_out = [one for one in parsed.texts if one.kind != "word" and not _is_indexed(one, query)]
    if left_out:
        named = name_phrases([one.text for one in left_out])
        yield f"The index of words has no {named}: nothing was required or excluded for that."
    if unknown:
        words = dict.fromkeys(_find_written(one, query.text) for one in unknown)
        yield f"No message has {', '.join(map(cut, words))}. Is the spelling right?"


def _is_indexed(text: Text, query: Query) -> bool:
    found = (one.matches.get(text) for one in query.by_language)
    return any(one and one.tsquery for one in found)


def _find_written(lexeme: str, text: str) -> str:
    """Return the word of a text that a lexeme is the stem of, as it is written there."""
    words: list[str] = [one.strip(".,;:!?()") for one in text.split()]
    words += _WORD.findall(text)
    for word in words:
        if word.lower() == lexeme:
            return word
    return max(words, key=lambda word: _count_shared(word.lower(), lexeme))


def _count_shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False)))


def _note_fields(connection: psycopg.Connection, asked: ParsedRequest) -> Iterator[str]:
    """Yield the notes on fields of a request without hits that no message meets."""
    for clause in asked.clauses:
        if len(clause) > 1 or clause[0].negated or not isinstance(clause[0].leaf, Field):
            continue
        name, value = clause[0].leaf
        named = cut(str(value))
        if name == "from" and _is_nobody(connection, clause, asked):
            yield f"No sender has {named} in the name or address."
        elif name in ("id", "thread") and not _is_stored(connection, str(value)):
            yield f'No message has the id {named}. For the text write "{name}:{named}".'
        elif name in _PARTS:
            yield (
                f"Every hit must have {named} in {_PARTS[name]}. "
                f'For the text write "{name}:{named}".'
            )


def _is_nobody(connection: psycopg.Connection, clause: Clause, asked: ParsedRequest) -> bool:
    resolved = resolve_clause(connection, clause, names_only=asked.request.names_only)
    return not resolved.alternatives and not resolved.always


def _is_stored(connection: psycopg.Connection, message_id: str) -> bool:
    row = connection.execute(
        statement("search", "is_stored"), {"message_id": message_id}
    ).fetchone()
    return bool(row and row[0])
