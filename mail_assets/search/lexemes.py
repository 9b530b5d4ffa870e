"""Texts of a query in the lexemes of one language, and how messages match them.

https://www.postgresql.org/docs/18/textsearch-controls.html

No index has stop words. A phrase with stop words is looked for by a regular expression in the texts
of the messages that have its other words. There a stop word stands as it is written, another word
is any that begins as all words with its stem do; to_tsvector then checks each place that is found.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import psycopg

from mail_assets.postgres.pending import Pending
from mail_assets.postgres.statements import statement
from mail_assets.search.language.expression import Text
from mail_assets.text.identifiers import find_identifiers
from mail_assets.text.letters import UNSPACED, ends_in_pair, has_unspaced, prepare_text
from mail_assets.words.query import Clause, Phrase, Prefix

#: A tsquery that no message matches.
NOTHING = "'x' & !'x'"
#: Words of a phrase up to which its stop words are looked for: its other words identify a longer
#: one, and a pattern of 480 words takes 70 ms for each place where it stands.
MAX_PATTERN = 32
_WORD = re.compile(r"[^\W_]+")
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
#: PostgreSQL's expressions for the rest of a word, the signs between two words, and where a word
#: begins and ends: unspaced letters are no part of a word next to them.
_REST = rf"(?:(?![{UNSPACED}])[[:alnum:]])"
_BETWEEN = "[^[:alnum:]]+"
_BEGIN = rf"(?:(?<![[:alnum:]])|(?<=[{UNSPACED}]))"
_END = rf"(?:(?![[:alnum:]])|(?=[{UNSPACED}]))"
#: The end of a stem of Porter's stemmer, which may differ from its word: happy, happi; ability,
#: abil; lying, lie. In English mail no stem differs elsewhere.
_ENGLISH_ENDING = re.compile(r"(?:ie|[eily])\Z")


class Lexemes(NamedTuple):
    """A text in one language: its lexemes in their order, and PostgreSQL's phrase of them.

    `in_order` is false where several lexemes stand at one place, as some dictionaries give them.
    `stop_words` are its words that have no lexeme, in lower case. `written` is the text itself in
    PostgreSQL's lower case, which is not always Python's (İ), unspaced letters as pairs.
    `beginnings` are those of the stems of longer words, where they may differ from the text.
    """

    lexemes: tuple[str, ...]
    in_order: bool
    phrase: str
    stop_words: frozenset[str] = frozenset()
    written: str = ""
    beginnings: tuple[str, ...] = ()


class TextMatch(NamedTuple):
    """The condition of a text for messages of one language: a tsquery, and clauses of a word index.

    Both are empty where the text has no lexeme: it requires nothing. `clauses` are also empty where
    a word index has no such condition; PostgreSQL then decides alone. Both find too much for a
    phrase with stop words: `pattern`, a regular expression of PostgreSQL, finds the places where it
    may stand, and one of these must match the tsquery.
    """

    tsquery: str = ""
    clauses: tuple[Clause, ...] = ()
    pattern: str = ""


def ask_lexemes(
    connection: psycopg.Connection, language: str, texts: Sequence[str]
) -> Pending[list[Lexemes]]:
    """Ask for the lexemes of each text, in one statement."""
    parameters = {"language": language, "texts": [*map(prepare_text, texts)]}
    asked = connection.execute(statement("search", "lexemes"), parameters)
    return Pending(asked.fetchall).then(
        lambda rows: [
            Lexemes(
                tuple(lexemes),
                len({*places}) == len(places),
                phrase,
                frozenset(words),
                written,
                tuple(beginnings),
            )
            for phrase, lexemes, places, words, written, beginnings in rows
        ]
    )


def match_texts(
    texts: Sequence[Text], by_language: Mapping[str, Sequence[Lexemes]]
) -> dict[str, dict[Text, TextMatch]]:
    """Return how messages of each language match the texts, from their lexemes in it.

    A text that has no lexeme in any language requires nothing. A phrase that has some in another
    language matches no message of a language where it has none: otherwise all of them would pass.
    """
    matches = {
        language: {
            text: match_text(text, one, language) for text, one in zip(texts, read, strict=True)
        }
        for language, read in by_language.items()
    }
    required = {text for found in matches.values() for text, one in found.items() if one.tsquery}
    nothing = {text: TextMatch(NOTHING) for text in required if text.kind == "phrase"}
    return {
        language: {
            text: one if one.tsquery else nothing.get(text, one) for text, one in found.items()
        }
        for language, found in matches.items()
    }


def match_text(text: Text, read: Lexemes, language: str) -> TextMatch:
    """Return how messages match a text of a query.

    A name (`pg_class`) is also found as it is written. A prefix that ends in a pair of unspaced
    letters is a phrase: such letters do not show where a word begins.
    """
    if text.kind == "prefix" and not ends_in_pair(text.text):
        return _match_prefix(read)
    written = text.text.lower()
    names = [written] if written in find_identifiers(text.text) else []
    if not read.lexemes:
        return TextMatch(match_any(names), tuple(names))
    tsquery = " | ".join([read.phrase, *map(quote_lexeme, names)])
    pattern = ""
    if text.kind == "phrase" and not names:
        pattern = build_pattern(text.text, read.lexemes, read.stop_words, language)
    if not read.in_order:
        return TextMatch(tsquery, pattern=pattern)
    phrase = read.lexemes[0] if len(read.lexemes) == 1 else Phrase(read.lexemes)
    return TextMatch(tsquery, tuple(dict.fromkeys([phrase, *names])), pattern)


def _match_prefix(read: Lexemes) -> TextMatch:
    """Return how messages match the beginning of a word.

    Lexemes that begin so match, and the stem of it as a word: `leasing*` also finds the lexeme
    `leas`. Where stems have other letters than words (`Müll*`, `mull`), those begin the lexeme.
    """
    written = read.written.strip()
    if " " in written:
        return TextMatch(f"{read.phrase}:*" if read.phrase.endswith("'") else read.phrase)
    stem = [one for one in read.lexemes if len(read.lexemes) == 1 and one != written]
    beginnings = dict.fromkeys([written, *read.beginnings])
    begins = [f"{quote_lexeme(one)}:*" for one in beginnings]
    tsquery = " | ".join([*begins, *map(quote_lexeme, stem)])
    return TextMatch(tsquery, (*map(Prefix, beginnings), *stem))


def match_any(lexemes: Iterable[str]) -> str:
    """Return a tsquery for any of these."""
    return " | ".join(map(quote_lexeme, lexemes))


def quote_lexeme(lexeme: str) -> str:
    """Return a lexeme quoted for a tsquery, which does not take quote_literal's E''."""
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def build_pattern(phrase: str, lexemes: Sequence[str], stop_words: Set[str], language: str) -> str:
    """Return the pattern of a phrase with stop words, empty where none is needed.

    A phrase of more than MAX_PATTERN words has none, nor has one with unspaced letters, which are
    found as pairs. `lexemes` are those of the phrase in its order, in the text search configuration
    `language`.
    """
    words = [word.lower() for word in _WORD.findall(phrase)]
    if stop_words.isdisjoint(words) or len(words) > MAX_PATTERN or has_unspaced(phrase):
        return ""
    others = [word for word in words if word not in stop_words]
    beginnings = dict(zip(others, _find_beginnings(others, lexemes, language), strict=True))
    parts = [_alike(beginnings[word]) if word in beginnings else word for word in words]
    return f"{_BEGIN}{_BETWEEN.join(parts)}{_END}"


def _alike(beginning: str) -> str:
    return f"{beginning}{_REST}*" if beginning else f"{_REST}+"


def _find_beginnings(words: Sequence[str], lexemes: Sequence[str], language: str) -> list[str]:
    """Return, for each word, the beginning that all words with its stem share; may be empty.

    Stemmers with stop words change the end of a word, and vowels (German: Apfel, Äpfel).
    """
    if language == "english" and len(words) == len(lexemes):
        shared = [_ENGLISH_ENDING.sub("", lexeme) for lexeme in lexemes]
        if all(map(str.startswith, words, shared)) and "".join(shared).isalnum():
            return shared
    return [word[0] if word[0] in _CONSONANTS else "" for word in words]
