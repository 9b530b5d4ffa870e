"""Texts of a query in lexemes: prefixes, and the pattern of a phrase with stop words."""

import itertools
import json
import random
import re

import psycopg
import pytest
from psycopg import sql

from mail_assets.search.filters import read_condition
from mail_assets.search.language.expression import Text
from mail_assets.search.lexemes import MAX_PATTERN, ask_lexemes, build_pattern, match_text
from mail_assets.text.letters import UNSPACED
from mail_assets.words.query import Prefix
from mail_assets_tests.sample_corpus import Corpus


@pytest.mark.parametrize(
    ("language", "text", "stop_words"),
    [
        ("english", "Out of memory, doesn't it", {"out", "of", "t", "it"}),
        ("english", "vacuum full", set()),
        ("german", "über die Lage", {"über", "die"}),
        ("simple", "out of memory", set()),
    ],
)
def test_words_without_a_lexeme_are_stop_words(
    connection: psycopg.Connection, language: str, text: str, stop_words: set[str]
) -> None:
    (read,) = ask_lexemes(connection, language, [text]).read()
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
def test_pattern_finds_a_phrase_and_tsquery_decides(
    connection: psycopg.Connection, phrase: str, text: str, stands: bool
) -> None:
    (read,) = ask_lexemes(connection, "english", [phrase]).read()
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
def test_prefix_finds_words_with_stems_of_other_letters(
    connection: psycopg.Connection, language: str, prefix: str, word: str, begins: bool
) -> None:
    (read,) = ask_lexemes(connection, language, [prefix]).read()
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


#: Words of which Porter's stemmer has more to say than where they end.
IRREGULAR = (
    "ability abilities able sensitive sensitivity lie lies lied lying die dying tie tying vie "
    "vying sky skies skis early earlier only singly gently ugly idle idly apply applies applied "
    "applying hope hoping hop hopping possible possibly possibility relate relational rational "
    "happy happier happiness news proceed exceed evening generate generic y yes ie"
)


@pytest.mark.parametrize(
    ("phrase", "lexemes", "language", "words"),
    [
        ("the leases", ["leas"], "english", ["leas*"]),
        ("the possibility", ["possibl"], "english", ["possib*"]),
        ("the lying", ["lie"], "english", ["l*"]),
        # two words are one lexeme: which are those of the others is not said
        ("the 2.0 page", ["2.0", "page"], "english", ["+", "+", "p*"]),
        ("the pages", ["pag"], "spanish", ["p*"]),
        ("the apple", ["apfel"], "german", ["+"]),
    ],
)
def test_words_of_a_stem_begin_alike(
    phrase: str, lexemes: list[str], language: str, words: list[str]
) -> None:
    pattern = build_pattern(phrase, lexemes, {"the"}, language)
    rest = rf"(?:(?![{UNSPACED}])[[:alnum:]])"
    parts = re.sub(r"(?<=[*+])\(.*", "", pattern.replace(rest, "")).split("[^[:alnum:]]+")
    assert [parts[0].rpartition(")")[2], *parts[1:]] == ["the", *words]


def test_pattern_needs_stop_words_and_a_short_phrase() -> None:
    assert build_pattern("vacuum full", ["vacuum", "full"], set(), "english") == ""
    longest, lexemes = "the lease " * (MAX_PATTERN // 2), ["leas"] * (MAX_PATTERN // 2)
    assert build_pattern(longest, lexemes, {"the"}, "english")
    assert build_pattern(f"{longest} renewed", [*lexemes, "renew"], {"the"}, "english") == ""
    assert build_pattern("the 数据", ["数据"], {"the"}, "english") == ""


@pytest.mark.parametrize("language", ["english", "spanish", "german"])
def test_pattern_finds_every_word_with_the_same_stem(
    connection: psycopg.Connection, corpus: Corpus, language: str
) -> None:
    texts = connection.execute("select lower(body_text) from messages").fetchall()
    found = {word for (text,) in texts for word in re.findall(r"[^\W_]+", text)}
    words = sorted(found.union(IRREGULAR.split()))
    by_stem: dict[str, list[str]] = {}
    patterns = {}
    for word, read in zip(words, ask_lexemes(connection, language, words).read(), strict=True):
        if len(read.lexemes) == 1:
            by_stem.setdefault(read.lexemes[0], []).append(word)
            patterns[word] = build_pattern(f"zzz {word}", read.lexemes, {"zzz"}, language)
    pairs = [(a, b) for alike in by_stem.values() for a in alike for b in alike if a != b]
    assert len(pairs) > 100
    missed = connection.execute(
        "select asked, other"
        "  from unnest(%s::text[], %s::text[], %s::text[]) as p (asked, other, pattern)"
        " where 'zzz ' || other !~* pattern",
        [[a for a, _ in pairs], [b for _, b in pairs], [patterns[a] for a, _ in pairs]],
    ).fetchall()
    assert missed == []


KINDS = ["text", "quote", "quote", "patch", "footer", "signature"]


def test_phrase_matches_only_outside_quotes(connection: psycopg.Connection) -> None:
    chance = random.Random("places")
    messages = [make_parts(chance) for _ in range(2_000)]
    place = re.compile(r"\bthe\W+leas\w*", re.IGNORECASE)
    expected = [any(map(place.search, new_texts(parts))) for parts in messages]
    query = sql.SQL("select {} from ({}) m order by number").format(
        sql.SQL(read_condition("phrase")),
        sql.SQL(
            "select number, '' as subject, body_text, segments, to_tsvector(body_text) as search"
            "  from unnest(%(texts)s::text[], %(segments)s::jsonb[])"
            "  with ordinality as t (body_text, segments, number)"
        ),
    )
    values = {
        "texts": ["".join(text for _, text in parts) for parts in messages],
        "segments": [json.dumps(to_segments(parts)) for parts in messages],
        "words": "'leas'",
        "pattern": build_pattern("the lease", ["leas"], {"the"}, "english"),
        "language": "english",
    }
    with connection.transaction(force_rollback=True):
        connection.execute("set local default_text_search_config = 'english'")
        found = [met for (met,) in connection.execute(query, values)]
    assert found == expected
    assert 300 < sum(expected) < 1_700


def make_parts(chance: random.Random) -> list[tuple[str, str]]:
    """Return the kinds and texts of a message's parts; a place may go on from one to another."""
    words = ("the ", "the\n> ", "The, ", "Lease. ", "leases ", "leased ", "über ", "renew\n")
    return [
        (chance.choice(KINDS), "".join(chance.choices(words, k=chance.randint(1, 3))))
        for _ in range(chance.randint(1, 6))
    ]


def new_texts(parts: list[tuple[str, str]]) -> list[str]:
    """Return the texts that nothing quoted is between."""
    runs = itertools.groupby(parts, key=lambda part: part[0] in ("quote", "patch"))
    return ["".join(text for _, text in run) for hidden, run in runs if not hidden]


def to_segments(parts: list[tuple[str, str]]) -> list[tuple[int, int, str]]:
    """Return where each part begins and ends, and its kind."""
    ends = [*itertools.accumulate(len(text) for _, text in parts)]
    return [(end - len(text), end, kind) for end, (kind, text) in zip(ends, parts, strict=True)]
