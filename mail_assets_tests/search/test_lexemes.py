"""Texts of a query in lexemes: phrases with stop words, names, versions, prefixes, addresses."""

import psycopg
import pytest

from mail_assets.search.language.expression import Text
from mail_assets.search.lexemes import TextMatch, match_text, words_of_texts
from mail_assets.tables.search_vectors import compose_vector, cut_message, stem_reader
from mail_assets.text.identifiers import find_identifiers
from mail_assets.words.index import Phrase, Prefix


def match(connection: psycopg.Connection, language: str, text: Text, *, shows: bool) -> TextMatch:
    stems = stem_reader(connection).read([language], words_of_texts([text]))[language]
    return match_text(text, stems, shows_addresses=shows)


def make_vector(connection: psycopg.Connection, language: str, text: str) -> str:
    cut = cut_message("", text, find_identifiers(text))
    return compose_vector(cut, stem_reader(connection).read([language], cut.words)[language])


def finds(
    connection: psycopg.Connection,
    asked: Text,
    text: str,
    language: str = "english",
    *,
    shows: bool = True,
) -> bool:
    found = match(connection, language, asked, shows=shows)
    vector = make_vector(connection, language, text)
    [matches, lexemes] = connection.execute(
        "select v @@ %s::tsquery, array(select lexeme from unnest(v) where lexeme not like '=%%'"
        " order by positions[1]) from (select %s::tsvector as v) t",
        [found.tsquery, vector],
    ).fetchone() or (False, [])
    if matches and found.clauses:  # a word index finds no less
        assert any(_stands(clause, lexemes) for clause in found.clauses)
    return bool(matches)


def _stands(clause: object, lexemes: list[str]) -> bool:
    match clause:
        case Prefix(beginning):
            return any(one.startswith(beginning) for one in lexemes)
        case Phrase(words):
            return {*words} <= {*lexemes}
    return clause in lexemes


@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("out of memory", "it ran OUT\n  of memories", True),
        ("out of memory", "an out-of-memory error", True),
        ("out of memory", "out of disk, not of memory", False),
        ("out of memory", "about of memory", False),
        ("memory of", "memory offset", False),
        ("the lease", "the contract, the leases", True),
        ("the lease", "a lease", False),
        ("end of the page", "end on the page", False),
        ("not null", "is null, not a null", False),
        ("not null", "is not null", True),
        ("to be or not to be", "To be, or not to be?", True),
        ("to be or not to be", "or to be not", False),
        ("out of memory", "出现out of memory错误", True),
        ("read-only", "it is read only", True),
        ("is_not_null", "IS NOT NULL", True),
        ("to_date", "the date", False),
        ("pg_stat", "see pg_stat_statements", True),
        ("stat_statements", "see pg_stat_statements", True),
        ("statements", "see pg_stat_statements", True),
        ("pg_analyze", "running pg_analyze()", True),
        ("planner", "the planner/optimizer", True),
        (".pgpass", "and ~/.pgpass", True),
        ("~/.pgpass", "and .pgpass", True),
        ("O\u2019Brien", "O'Brien said", True),
        ("zulip#9165", "see https://github.example/zulip/zulip#9165", True),
        ("9.6", "since 9.6.1", True),
        ("9.6", "since PG9.6rc1", True),
        ("9.6", "since 1.9.6, 19.6 and 9.60", False),
        ("v9.6", "9.6", True),
        ("9.6.1", "9.6", False),
        ("C++", "written in C++.", True),
        ("C++", "C or C+ or c", False),
        ("c++", "-std=C++17", True),
        ("C++17", "C++ 17", False),
        ("c", "C++ or C#", True),
        ("p", "x = *p++;", True),
        ("glibc", "glibc2.38", True),
        ("glibc3", "glibc2.38", False),
        ("py", "py3", False),
        ("127", "١٢٧", True),
        ("C#", "a C#/F# tool", True),
        ("C#", "C++", False),
        ("g++", "with g++-12", True),
        (".NET", "the .Net runtime", True),
        (".NET", "ASP.NET", True),
        (".NET", "on the net, example.net", False),
        (".deb", "foo_1.0.deb", True),
        ("C++ queue", "a C++ queue", True),
        ("C++ queue", "a C queue", False),
        ("3f9c2ab", "in 3f9c2ab81d04", True),
        ("3f9c2ab81d04", "in 3f9c2ab81d0455c1e7a0b6d2f8c3a1e09b7d6c54", True),
        ("3f9c2ab81d0455c1e7a0b6d2f8c3a1e09b7d6c54", "since 3f9c2ab81d04", True),
        ("(3f9c2ab81d04)", "3f9c2ab", True),
        ("3f9c2ab81d04", "3f9c2ab81d05", False),
        ("bjorn", "Bjo\u0308rn", True),
        ("user", "getUserName()", True),
        ("UserName", "getUserName()", True),
        ("getusername", "getUserName()", True),
        ("database", "data\u200bbase", True),
        ("error", "\x1b[31mERROR\x1b[0m", True),
        ("postgres", "Ｐｏｓｔｇｒｅｓ", True),
    ],
)
def test_text_is_found_where_its_words_stand(
    connection: psycopg.Connection, phrase: str, text: str, stands: bool
) -> None:
    assert finds(connection, Text("phrase", phrase), text) == stands
    assert finds(connection, Text("word", phrase), text) == stands


@pytest.mark.parametrize(
    ("language", "prefix", "word", "begins"),
    [
        ("german", "Müll", "Müllabfuhr", True),
        ("german", "Großbuch", "Großbuchstaben", True),
        ("german", "Äpf", "Äpfel", True),
        ("german", "Apf", "Äpfel", True),
        ("german", "Schlüss", "Schlosser", False),
        ("turkish", "İstan", "İstanbul", True),
        ("greek", "μνήσ", "μνήμης", False),
        ("greek", "μνή", "μνήμης", True),
        ("spanish", "canció", "canciones", False),
        ("spanish", "cancio", "canción", True),
        ("english", "leasing", "leasings", True),
        ("english", "leasing", "lease", False),
        ("english", "organiz", "organization", True),
        ("spanish", "difí", "difícil", True),
        ("russian", "ёлк", "ёлки", True),
        ("french", "prés", "presbytère", False),
        ("english", "happin", "happiness", True),
        ("english", "naïv", "naïvely", True),
        ("simple", "Élé", "Élégant", True),
        ("english", "9.6", "9.6.1", True),
        ("english", "9.6", "9.60", True),
        ("english", "9.6", "19.6", False),
        ("english", "pg_st", "pg_stat_activity", True),
        ("english", "pg_st", "x.pg_statements", True),
        ("english", "pg_st", "pg_class", False),
        ("english", "src/back", "src/backend/x.c", True),
    ],
)
def test_prefix_begins_a_word_as_it_is_written(
    connection: psycopg.Connection, language: str, prefix: str, word: str, begins: bool
) -> None:
    assert finds(connection, Text("prefix", prefix), word, language) == begins


@pytest.mark.parametrize("asked", ["tgl", "sss", "sss.pgh.pa.us", "tgl@sss.pgh.pa.us", "tgl@sss"])
def test_addresses_are_found_only_where_they_are_shown(
    connection: psycopg.Connection, asked: str
) -> None:
    text = "write to tgl@sss.pgh.pa.us today"
    for kind in ("word", "phrase", "prefix"):
        assert finds(connection, Text(kind, asked), text)
        assert not finds(connection, Text(kind, asked), text, shows=False)
    assert finds(connection, Text("phrase", f"to {asked}"), text) == asked.startswith("tgl@")


@pytest.mark.parametrize("text", ["the", "!?", "", "-"])
def test_text_without_a_word_requires_nothing(connection: psycopg.Connection, text: str) -> None:
    for kind in ("word", "phrase"):
        found = match(connection, "english", Text(kind, text), shows=True)
        assert found == TextMatch()
