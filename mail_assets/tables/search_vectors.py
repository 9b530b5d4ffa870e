"""Builds the full-text vector of a message; PostgreSQL only returns the stems of words.

A process that parses has no connection. It cuts the text into words with positions (`cut_message`).
The process that loads reads the stems and writes the vector (`compose_vector`) in PostgreSQL's
text form of a tsvector: https://www.postgresql.org/docs/18/datatype-textsearch.html

    'lock':3A,9B    a stem; weight A in the subject, B in the text
    'user':4C       a part of `getUserName`, a word without accents, a word of a file's name
        'locking'       a word as written, if its stem differs: for prefix searches
        'pg_locks'      a name as written (text/identifiers.py)
    '=the':8        a stop word: it counts in phrases only
    '@jo':5         a part of a mail address: found only where addresses are shown
"""

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

import psycopg

from mail_assets.postgres.statements import Pending, statement
from mail_assets.text.letters import MAX_SUBJECT_BYTES, cut_to_bytes
from mail_assets.text.words import has_stem, list_pieces

#: Words of a language whose stems are cached; the last month or page read may exceed it.
KEPT_WORDS = 100_000
#: Prefix of the lexeme of a stop word.
STOP = "="

#: Word -> its lexemes in PostgreSQL, the main one first; none for a stop word.
Stems = Mapping[str, tuple[str, ...]]


class StemReader:
    """Reads the stems of words over one connection, each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[str, tuple[str, ...]]] = {}

    def read(self, languages: Iterable[str], words: Collection[str]) -> Mapping[str, Stems]:
        """Return the stems of words in each language; the result may contain other words too."""
        return self.ask(languages, words).read()

    def ask(self, languages: Iterable[str], words: Collection[str]) -> Pending[Mapping[str, Stems]]:
        """Send one statement for the stems of words; send none if all are cached."""
        wanted = {*words}
        unknown: list[tuple[str, str]] = []
        kept: dict[str, dict[str, tuple[str, ...]]] = {}
        for language in languages:
            known = self._known.setdefault(language, {})
            if len(known) > KEPT_WORDS:
                known = self._known[language] = {}
            kept[language] = known
            fresh = wanted.difference(known)
            unknown += ((language, word) for word in sorted(filter(has_stem, fresh)))
        if not unknown:
            return Pending.known(kept)
        asked, unread = zip(*unknown, strict=True)
        parameters = {"languages": [*asked], "words": [*unread]}
        rows = self._connection.execute(statement("search", "stems"), parameters)

        def keep(found: list[tuple[str, str, list[str]]]) -> Mapping[str, Stems]:
            for language, word, lexemes in found:
                kept[language][word] = tuple(lexemes)
            return kept

        return Pending(rows.fetchall).then(keep)


_READERS: WeakKeyDictionary[psycopg.Connection, StemReader] = WeakKeyDictionary()


def stem_reader(connection: psycopg.Connection) -> StemReader:
    """Return the reader of a connection, which caches stems."""
    reader = _READERS.get(connection)
    if reader is None:
        reader = _READERS[connection] = StemReader(connection)
    return reader


def list_lexemes(word: str, stems: Stems) -> tuple[str, ...]:
    """Return the lexemes of a word in normal form; a stop word has its own, "=word"."""
    return stems.get(word, (word,)) or (f"{STOP}{word}",)


#: Prefix of the lexeme of a part of a mail address.
ADDRESS = "@"
#: Most bytes of a vector as text. In PostgreSQL the lexemes take no more; its limit is 1,048,575
#: (PostgreSQL 18 manual, section 12.11). Only mail full of data reaches this limit; the last words
#: are then left out.
MAX_VECTOR_BYTES = 1_000_000
#: The last position that PostgreSQL stores: words after it are in no phrase.
MAX_PLACE = 16_383


class CutText(NamedTuple):
    """A message cut into words: positions and weights of each, and its names.

    `words` maps a word in normal form to its positions as PostgreSQL writes them: `3A,9B`. `fixed`
    are lexemes that have no stem.
    """

    words: dict[str, str]
    fixed: dict[str, str]


def cut_message(
    subject: str, text: str, names: Iterable[str] = (), file_names: Iterable[str] = ()
) -> CutText:
    """Return the words of a message with their positions.

    `names` are lexemes of text/identifiers.py. `file_names` are the names of attachments and of
    files in diffs. There is a gap in the positions after the subject, the text and each file name,
    so that no phrase spans two of them. A word that only occurs after the last position is kept
    once.
    """
    words: dict[str, str] = {}
    places_of = words.get
    fixed: dict[str, str] = {}
    begin = 1
    fields = [
        (cut_to_bytes(subject, MAX_SUBJECT_BYTES), "A"),
        (text, "B"),
        *((name, "C") for name in file_names),
    ]
    for field, weight in fields:
        for piece, in_address in list_pieces(field):
            placed = max(0, MAX_PLACE + 1 - begin)
            places = _write_places(begin, min(placed, len(piece)), weight)
            begin += len(piece)
            if in_address:
                for (word, _), place in zip(piece, places, strict=False):
                    _add_place(fixed, f"{ADDRESS}{word}", place.removesuffix(weight))
                for word, _ in piece[placed:]:
                    fixed.setdefault(f"{ADDRESS}{word}", str(MAX_PLACE))
                continue
            for (word, others), place in zip(piece, places, strict=False):
                known = places_of(word)
                words[word] = f"{known},{place}" if known else place
                if others:
                    for other in others:
                        _add_place(words, other, place.replace(weight, "C"))
            for word, others in piece[placed:]:
                words.setdefault(word, f"{MAX_PLACE}{weight}")
                for other in others:
                    words.setdefault(other, f"{MAX_PLACE}C")
        begin += 1
    for name in names:
        fixed.setdefault(name, "")
    return CutText(words, fixed)


def _add_place(known: dict[str, str], word: str, place: str) -> None:
    known[word] = f"{known[word]},{place}" if word in known else place


def _write_places(begin: int, count: int, weight: str) -> list[str]:
    known = _first_places(weight)
    if begin + count <= len(known):
        return known[begin : begin + count]
    return [f"{place}{weight}" for place in range(begin, begin + count)]


@functools.cache
def _first_places(weight: str) -> list[str]:
    """Return the first positions as text; most messages have fewer words than these."""
    return [f"{place}{weight}" for place in range(2_000)]


def compose_vector(cut: CutText, stems: Stems) -> str:
    """Return the vector of a message as text; PostgreSQL merges equal lexemes when reading it."""
    # names first, because the end may be cut off
    entries = [f"'{_quote(one)}':{found}".removesuffix(":") for one, found in cut.fixed.items()]
    written: list[str] = []
    for word, found in cut.words.items():
        lexemes = stems.get(word)
        if lexemes is None:
            entries.append(f"'{word}':{found}")
        elif not lexemes:
            # str.translate takes seven times as long
            bare = found.replace("A", "").replace("B", "").replace("C", "")
            entries.append(f"'{STOP}{word}':{bare}")
        else:
            lexeme = lexemes[0]
            if lexeme == word:
                entries.append(f"'{word}':{found}")
                continue
            written.append(f"'{word}'")
            entries.append(f"'{_quote(lexeme)}':{found}")
            for other in lexemes[1:]:
                place = found.replace("A", "C").replace("B", "C")
                entries.append(f"'{_quote(other)}':{place}")
    vector = " ".join(entries + written)
    if len(vector) * 4 <= MAX_VECTOR_BYTES or len(vector.encode()) <= MAX_VECTOR_BYTES:
        return vector
    return cut_to_bytes(vector, MAX_VECTOR_BYTES).rpartition(" ")[0]


def quote_lexeme(lexeme: str) -> str:
    """Return a lexeme quoted for a tsquery or tsvector, which do not accept E'' strings."""
    return f"'{_quote(lexeme)}'"


def _quote(lexeme: str) -> str:
    if "'" in lexeme or "\\" in lexeme:
        return lexeme.replace("\\", "\\\\").replace("'", "''")
    return lexeme
