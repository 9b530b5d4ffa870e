"""Texts of a query: where a phrase with stop words may stand."""

import psycopg
import pytest

from mail_assets.search.language.expression import Text
from mail_assets.search.lexemes import ask_lexemes, match_text
from mail_assets.words.query import Prefix


@pytest.mark.parametrize(
    ("language", "text", "stop_words"),
    [
        ("english", "Out of memory, doesn't it", {"out", "of", "t", "it"}),
        ("english", "vacuum full", set()),
        ("german", "über die Lage", {"über", "die"}),
        ("simple", "out of memory", set()),
    ],
)
def test_words_without_a_lexeme_are_the_stop_words_of_the_language(
    connection: psycopg.Connection, language: str, text: str, stop_words: set[str]
) -> None:
    (read,) = ask_lexemes(connection, language, [text])()
    assert read.stop_words == stop_words


@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("out of memory", "it ran OUT\n  of memories", True),
        ("out of memory", "an out-of-memory error", True),
        ("out of memory", "out of disk, not of memory", False),
        ("out of memory", "about of memory", False),
        ("memory of", "memory offset", False),
        ("the lease", "the contract, the leases", True),
        ("end of the page", "end on the page", False),
        ("out of memory", "出现out of memory错误", True),
        ("out of memory", "出现out of memories", True),
    ],
)
def test_a_pattern_finds_the_places_of_a_phrase_and_its_tsquery_decides(
    connection: psycopg.Connection, phrase: str, text: str, stands: bool
) -> None:
    (read,) = ask_lexemes(connection, "english", [phrase])()
    match = match_text(Text("phrase", phrase), read, "english")
    found = connection.execute(
        "select from regexp_matches(%s, %s, 'gi') as f (place)"
        " where to_tsvector('english', f.place[1]) @@ %s::tsquery",
        [text, match.pattern, match.tsquery],
    ).fetchall()
    assert bool(found) == stands


@pytest.mark.parametrize(
    ("language", "prefix", "word", "begins"),
    [
        ("german", "Müll", "Müllabfuhr", True),
        ("german", "Großbuch", "Großbuchstaben", True),
        ("german", "Äpf", "Äpfel", True),
        ("german", "Schlüss", "Schlosser", False),
        ("turkish", "İstan", "İstanbul", True),
        ("greek", "ΔΙΑΚΟΜΙΣΤΗΣ", "διακομιστής", True),
        ("greek", "μνήσ", "μνήμης", False),
        ("greek", "μνή", "μνήμης", True),
        ("spanish", "canció", "canciones", True),
        ("english", "leasing", "lease", True),
        ("spanish", "difí", "difícil", True),
        ("russian", "ёлк", "ёлки", True),
        ("french", "prés", "presbytère", False),
        ("english", "happy", "happiness", True),
        ("english", "happin", "happiness", False),
        ("english", "naïv", "naïvely", True),
        ("simple", "Élé", "Élégant", True),
    ],
)
def test_a_prefix_finds_words_that_begin_so_whatever_letters_their_stems_have(
    connection: psycopg.Connection, language: str, prefix: str, word: str, begins: bool
) -> None:
    (read,) = ask_lexemes(connection, language, [prefix])()
    match = match_text(Text("prefix", prefix), read, language)
    [lexemes, found] = connection.execute(
        "select tsvector_to_array(v), v @@ %s::tsquery from to_tsvector(%s::regconfig, %s) as v",
        [match.tsquery, language, word],
    ).fetchone() or ([], None)
    assert found == begins
    assert begins == any(
        lexeme.startswith(one.text) if isinstance(one, Prefix) else lexeme == one
        for one in match.clauses
        for lexeme in lexemes
    )
