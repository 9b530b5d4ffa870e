"""Notes on a response: one line each about things that the hits do not show, for every surface.

They report phrases that no message has, how far back a list by date reached, words that are in no
index or in no message, and fields that no message meets. Notes on the signs of the query
(language/notes.py) come first.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile

import psycopg

from mail_assets.errors import name_some
from mail_assets.postgres.statements import read_value, statement
from mail_assets.search.field_conditions import resolve_clause
from mail_assets.search.language.expression import Clause, Field, held_phrases, leaves
from mail_assets.search.language.notes import MAX_NAMED, cut
from mail_assets.search.language.request import Mode, Sort
from mail_assets.search.language.syntax import SIGNS, ParsedRequest
from mail_assets.search.page import Page
from mail_assets.search.query import Query
from mail_assets.search.retrieval import RankedMatches
from mail_assets.tables.search_vectors import ADDRESS
from mail_assets.text.letters import is_letter_alone

#: Note if no message has a word of the query or is near it in meaning.
NOTHING_NEAR = (
    "Nothing here has the words of the question or is near it in meaning: try other words, "
    "the beginning of a word (leas*), or a whole question."
)

#: Most commits that are looked up for an abbreviated id; characters of an id in a note.
MAX_COMMITS, SHORT_SHA = 10, 12

#: Fewest digits that make a text with an @ an id rather than an address.
ID_DIGITS = 6

_WORD, _DIGIT = re.compile(r"\w+"), re.compile(r"[0-9]")
_AROUND = ".,;:!?()[]{}<>\"'`"
#: Fields that match a part of a text, with the words that notes use for it.
_PARTS = {
    "subject": "the subject",
    "to": "a receiver",
    "file": "the name of an attached file, or of one that a commit of the mail changes",
}


def write_notes(
    connection: psycopg.Connection,
    languages: Mapping[str, str],
    asked: ParsedRequest,
    parsed: ParsedRequest,
    found: RankedMatches,
    page: Page,
) -> tuple[str, ...]:
    """Return the notes; `asked` is the original request, `parsed` the one that found the hits.

    `languages` maps lists to text search configurations.
    """
    notes = [*asked.notes]
    if parsed.ranks != asked.ranks:
        notes.append(
            f"{cut(asked.text)} has only very common words: messages with it are listed by date."
        )
    elif parsed is not asked:
        named = name_phrases(asked.phrases)
        notes.append(f"Nothing was found with {named}: searched without quotes.")
    elif not found.candidates and (held := [one for one in held_phrases(asked.node) if " " in one]):
        notes.append(
            f"Nothing was found with {name_phrases(held)}. To search for the words, leave "
            "out the quotes."
        )
    # others look like addresses
    ids = [one for one in asked.message_ids if len(_DIGIT.findall(one)) >= ID_DIGITS]
    pasted = ids[0] if ids and found.looked_up else ""
    if pasted:
        notes.append(f"No message has the id {cut(pasted)}: it was searched as text.")
    by_words = parsed.request.mode != Mode.semantic or not parsed.ranks
    if (looked_up := found.looked_up) and parsed.text and by_words and not pasted:
        searched = len({languages[name] for name in looked_up.filters.lists})
        notes += _note_words(
            parsed, looked_up.query, found.unknown, searched, has_hits=bool(page.hits)
        )
    if found.far and not found.candidates:
        notes.append(NOTHING_NEAR)
    notes += _note_commits(connection, asked)
    if not page.hits:
        notes += _note_fields(connection, asked)
    if page.is_short and (day := found.looked_back_to):
        seen, others = (f"from {day} on", "before")
        if asked.request.sort == Sort.oldest:
            seen, others = f"before {day}", "after"
        notes.append(f"Only messages {seen} were read: for others add {others}:{day}.")
    return tuple(dict.fromkeys(notes))


def name_phrases(phrases: Sequence[str]) -> str:
    """Quote phrases for a note, shortened: "one" and "two" and 3 more."""
    return name_some((f'"{cut(one)}"' for one in phrases), MAX_NAMED, " and ")


def _note_words(
    parsed: ParsedRequest,
    query: Query,
    unknown: Collection[str],
    languages: int,
    *,
    has_hits: bool,
) -> Iterator[str]:
    """Yield the notes on words that are in no index, or in no message.

    `languages` is the number of languages that are searched. A stop word of one language has a
    lexeme in the others, where nobody uses it.
    """
    asked = [
        {one.lexeme for one in of.words.terms if not one.lexeme.startswith(ADDRESS)}
        for of in query.by_language
    ]
    typed = parsed.request.query.strip() if SIGNS in parsed.node.parts else parsed.text
    is_known = any(lexemes - {*unknown} for lexemes in asked)
    is_common = sum(map(bool, asked)) < languages or not _has_letter(parsed.text)
    if not query.ranks and len(query.by_language) < languages:
        yield _name_unindexed(typed, "they were left out")
    elif query.ranks and not any(asked) and query.parsed.in_addresses:
        yield from _note_address(parsed, query, unknown)
    elif query.ranks and not is_known and is_common:
        remedy = "hits are found by meaning alone" if has_hits else "add a rarer word"
        yield _name_unindexed(typed, remedy)
    else:
        words = _find_unknown(query, unknown, languages)
        alone = [one for one in parsed.text.split() if is_letter_alone(one)]
        for one in alone:
            if one in words or not (query.ranks or has_hits):
                yield f"{one} alone is not in the index, which has pairs of letters: write {one}*."
        if spelled := [one for one in words if one not in alone]:
            yield f"No message has {', '.join(map(cut, spelled))}. Is the spelling right?"
    indexed = {
        text for one in query.by_language for text, match in one.matches.items() if match.tsquery
    }
    left_out = [one for one in parsed.texts if one.kind != "word" and one not in indexed]
    if left_out and query.by_language:
        named = name_phrases([one.text for one in left_out])
        yield f"The word index has no {named}: nothing was required or excluded for that."


def _note_address(parsed: ParsedRequest, query: Query, unknown: Collection[str]) -> Iterator[str]:
    if not query.shows_addresses:
        yield f"Addresses are hidden here and not searched, as in {cut(parsed.text)}."
        return
    for address in [one.removeprefix(ADDRESS) for one in query.parsed.identifiers][:MAX_NAMED]:
        if f"{ADDRESS}{address}" in unknown:
            yield f"No message has {cut(address)} in its text."
        yield f"{cut(address)} was searched as text. For mail from it, write from:{cut(address)}."


def _name_unindexed(text: str, outcome: str) -> str:
    kind = "very common words" if _has_letter(text) else "signs"
    return f"The word index has no {kind}, as in {cut(text)}: {outcome}."


def _has_letter(text: str) -> bool:
    return any(map(str.isalnum, text))


def _find_unknown(query: Query, unknown: Collection[str], languages: int) -> list[str]:
    """Return the words whose stems are unknown in every language, in their order in the query."""
    if not unknown:
        return []
    words = [one.strip(_AROUND) for one in query.text.split()]
    words += _WORD.findall(query.text)
    pairs = {one for one in query.parsed.joined if "/" in one}  # "this/that": its words count
    stems: dict[str, list[set[str]]] = {}
    for language in query.by_language:
        found: dict[str, set[str]] = {}
        for term in language.words.terms:
            if term.lexeme.startswith(ADDRESS) or term.lexeme in pairs:
                continue
            found.setdefault(_find_written(term.lexeme, words), set()).add(term.lexeme)
        for word, lexemes in found.items():
            stems.setdefault(word, []).append(lexemes)
    return [
        word
        for word in dict.fromkeys(words)
        if len(of_word := stems.get(word, [])) == languages
        and all(lexemes <= {*unknown} for lexemes in of_word)
    ]


def _find_written(lexeme: str, words: Sequence[str]) -> str:
    """Return the word, as written, whose stem is the lexeme."""
    for word in words:
        if word.lower() == lexeme:
            return word
    return max(words, key=lambda word: _count_shared(word.lower(), lexeme))


def _count_shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False)))


def _note_fields(connection: psycopg.Connection, asked: ParsedRequest) -> Iterator[str]:
    """Yield the notes on fields that no message meets, for a request without hits."""
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


def _note_commits(connection: psycopg.Connection, asked: ParsedRequest) -> Iterator[str]:
    """Yield the notes on `commit:` fields that name no commit, several, or one without mail."""
    fields = (leaf for leaf in leaves(asked.node) if isinstance(leaf, Field))
    named = dict.fromkeys(str(one.value) for one in fields if one.name == "commit")
    if not named:
        return
    if not read_value(connection, statement("search_patches", "has_commits")):
        yield (
            "No commits are stored here, so commit: finds nothing: lists.toml names no repository, "
            "or `mail-assets backfill` has not read it yet."
        )
        return
    for prefix in [*named][:MAX_NAMED]:
        query = statement("search_patches", "commits_named")
        values = {"prefix": prefix, "most": MAX_COMMITS}
        found = connection.execute(query, values).fetchall()
        shas = [*dict.fromkeys(sha for sha, _ in found)]
        if not found:
            yield f"No commit has an id that begins with {cut(prefix)}."
        elif len(shas) > 1:
            more = "at least " if len(found) == MAX_COMMITS else ""
            some = ", ".join(sha[:SHORT_SHA] for sha in shas[:MAX_NAMED])
            yield (
                f"{cut(prefix)} is ambiguous: {more}{len(shas)} commits begin so ({some}), and the "
                "mails of all of them are found. Write more digits."
            )
        elif not any(has_mail for _, has_mail in found):
            yield f"No mail here is certain to belong to commit {shas[0][:SHORT_SHA]}."


def _is_nobody(connection: psycopg.Connection, clause: Clause, asked: ParsedRequest) -> bool:
    resolved = resolve_clause(connection, clause, names_only=asked.request.names_only)
    return not resolved.alternatives and not resolved.always


def _is_stored(connection: psycopg.Connection, message_id: str) -> bool:
    row = connection.execute(
        statement("search", "is_stored"), {"message_id": message_id}
    ).fetchone()
    return bool(row and row[0])
