"""Stems of words, by the dictionaries of PostgreSQL, kept for each connection.

Any text search configuration gives them. PostgreSQL is asked for single words alone, so what stands
around a word never decides how it is read. A word without a stem is a stop word.
https://www.postgresql.org/docs/18/textsearch-dictionaries.html
"""

from collections.abc import Collection, Iterable, Mapping
from weakref import WeakKeyDictionary

import psycopg

from mail_assets.postgres.statements import Pending, statement
from mail_assets.text.words import has_stem

#: Words whose stems are kept of a language; one month or page may add more.
KEPT_WORDS = 100_000
#: Begins the lexeme of a stop word.
STOP = "="

#: The lexemes of a word by PostgreSQL, the first one first.
Stems = Mapping[str, tuple[str, ...]]


class StemReader:
    """Reads the stems of words over one connection, each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[str, tuple[str, ...]]] = {}

    def read(self, languages: Iterable[str], words: Collection[str]) -> Mapping[str, Stems]:
        """Return the stems of each language: of these words, and of others that were read."""
        return self.ask(languages, words).read()

    def ask(self, languages: Iterable[str], words: Collection[str]) -> Pending[Mapping[str, Stems]]:
        """Ask for the stems of words, in one statement; none is sent where all are known."""
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
    """Return the reader of a connection, which keeps what it has read."""
    reader = _READERS.get(connection)
    if reader is None:
        reader = _READERS[connection] = StemReader(connection)
    return reader


def list_lexemes(word: str, stems: Stems) -> tuple[str, ...]:
    """Return the lexemes of a word in normal form; a stop word has one of its own."""
    return stems.get(word, (word,)) or (f"{STOP}{word}",)
