"""Identifiers in texts and diffs."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.text import identifiers as room
from mail_assets.text.identifiers import (
    MAX_IDENTIFIERS,
    MAX_LENGTH,
    find_identifiers,
    find_signed,
    find_version,
    list_patch_names,
)

UNIFIED = """\
diff --git a/src/backend/access/heap/heapam.c b/src/backend/access/heap/heapam.c
index 0123abc..4567def 100644
--- a/src/backend/access/heap/heapam.c
+++ b/src/backend/access/heap/heapam.c
@@ -2000,7 +2000,7 @@ heap_multi_insert(Relation relation, TupleTableSlot **slots)
 \tsame
-\told_call(x);
+\tnew_call(x);
@@ -1,1 +1,1 @@ def restore_point(name):
-a
+b
"""
CONTEXT = """\
Index: src/pl/plperl/plperl.c
*** src/pl/plperl/plperl.c\t12 Jan 2006 22:15:56 -0000\t1.99
--- src/pl/plperl/plperl.c\t13 Jan 2006 22:15:56 -0000
*************** plperl_trigger_handler(PG_FUNCTION_ARGS)
*** 1,2 ****
! old
--- 1,2 ----
! new
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "see src/backend/access/heap/heapam.c.",
            {"src/backend/access/heap/heapam.c", "heapam.c", "heap/heapam.c"},
        ),
        ("at heapam.c:2345", {"heapam.c"}),
        ("in /etc/a-b/postgresql.conf,", {"etc/a-b/postgresql.conf", "postgresql.conf", "a-b"}),
        ("raise work_mem", {"work_mem"}),
        ("pg_stat_statements.track = all", {"pg_stat_statements.track", "pg_stat_statements"}),
        ("HEAP_XMIN_FROZEN", {"heap_xmin_frozen"}),
        ("x->tts_values[0]", {"tts_values"}),
        ("std::vector", {"std::vector"}),
        ("obj.__init__(self)", {"obj.__init__", "__init__"}),
        ("--enable-debug or read-only", {"enable-debug", "read-only"}),
        ("planner/optimizer", {"planner/optimizer"}),
        ("read\u2010only, ｐｇ＿class, pg\u00ad_class", {"read-only", "pg_class"}),
        ("PG9.6.1 or v9.6, 8.3beta2", {"9.6.1", "9.6.1.", "9.6.", "9.6", "8.3beta2", "8.3."}),
        ("ask Jo.Doe@a.example.", {"@jo.doe@a.example"}),
        ("see 3f9c2ab, 3f9c2ab81d04", {"3f9c2ab", "3f9c2ab81d04", "3f9c2ab."}),
        ("1234567 and defaced", set()),
        (
            "https://www.a.example/b_c/d-e.html?x",
            {
                "www.a.example/b_c/d-e.html?x",
                "www.a.example",
                "a.example",
                "b_c",
                "d-e.html",
                "d-e",
            },
        ),
        ("550e8400-e29b-41d4-a716-446655440000", {"550e8400-e29b-41d4-a716-446655440000"}),
        ("ERROR: 42P01: no such table", {"42p01"}),
        ("SQLSTATE 23505", {"23505"}),
        ("fixed in 8f3a2b1", {"8f3a2b1"}),
        ("range abc1234..def5678", {"abc1234", "def5678"}),
        ("在pg_class表中", {"pg_class"}),
        ("40P01エラー", {"40p01"}),
        ("8f3a2b1에서", {"8f3a2b1"}),
        ("看src/zoo/cebra.c：", {"src/zoo/cebra.c", "cebra.c"}),
        ("https://example.org/docs/sql-select.html", {"docs/sql-select.html", "sql-select.html"}),
        ("use C++, g++ or C#; libstdc++.so.6", {"c++", "g++", "c#", "libstdc++"}),
        ("-std=c++17 and gnu++2a", {"c++17", "c++", "gnu++2a", "gnu++"}),
        ("用C++编写 https://gcc.example/libstdc++/", {"c++"}),
        (".NET (.Net), ASP.NET and ~/.pgpass", {".net", "asp.net", ".pgpass"}),
        (UNIFIED, {"heapam.c", "heap_multi_insert", "restore_point", "0123abc"}),
    ],
)
def test_names_are_found(text: str, expected: set[str]) -> None:
    assert expected <= set(find_identifiers(text))


@pytest.mark.parametrize("text", [
    "A plain sentence, with an end.", "e.g. this, i.e. that", "it is _very_ slow",
    "15 seconds at 12:30 on 2004/05/14", "20000 rows, 10,000 more", "99999 is of no class",
    "facade defaced 1234567", "----- _____ ..... /////", "", "it works\n--- and so on, as ever",
    "见说明.txt, a word--and another", "#define a b#c +++ ++ # ... 3#", "bug#123",
])  # fmt: skip
def test_ordinary_words_are_no_names(text: str) -> None:
    assert find_identifiers(text) == []


def test_diff_gives_file_and_function_names_but_no_code() -> None:
    assert find_identifiers("", list_patch_names([UNIFIED])) == [
        "heap/heapam.c",
        "heap_multi_insert",
        "heapam.c",
        "restore_point",
        "src/backend/access/heap/heapam.c",
    ]
    assert list_patch_names([CONTEXT]) == ["src/pl/plperl/plperl.c", "plperl_trigger_handler"]


def test_letters_of_unspaced_scripts_are_no_part_of_a_name() -> None:
    assert find_identifiers("在pg_class表中") == ["pg_class"]


@pytest.mark.parametrize(("text", "lexeme"), [
    ("9.6", "9.6."),
    ("v9.6.1", "9.6.1."),
    ("(10.0),", "10.0."),
    ("9", ""),
    ("a 9.6", ""),
    ("9.6rc1", ""),
])  # fmt: skip
def test_version_alone_is_found_by_its_beginnings(text: str, lexeme: str) -> None:
    assert find_version(text) == lexeme


@pytest.mark.parametrize(("text", "lexeme"), [
    ("C++", "c++"),
    ("(c#),", "c#"),
    ("g++-", "g++"),
    ("C++20", "c++20"),
    (".NET", ".net"),
    (".Net.", ".net"),
    (".net", ""),
    (".gitignore", ""),
    ("a C++", ""),
    ("bug#12", ""),
    ("C", ""),
])  # fmt: skip
def test_signs_make_another_word(text: str, lexeme: str) -> None:
    assert find_signed(text) == lexeme


def test_query_meets_the_text_it_was_copied_from() -> None:
    text = "autovacuum_naptime is read in src/backend/postmaster/autovacuum.c"
    assert set(find_identifiers("postmaster/autovacuum.c")) <= set(find_identifiers(text))


def test_diffs_go_first_among_too_many_names() -> None:
    found = find_identifiers(
        " ".join(f"name_{i:04}" for i in range(2 * MAX_IDENTIFIERS)), list_patch_names([UNIFIED])
    )
    assert len(found) == MAX_IDENTIFIERS
    assert "heap_multi_insert" in found


def test_name_too_long_for_the_index_is_left_out() -> None:
    longest = "x_" + "y" * (MAX_LENGTH - 2)
    assert longest in find_identifiers(longest)
    assert find_identifiers("x" + longest) == []


PIECES = ("a_b", "/", "::", "\x00", "--- a/\x00x\n", "\n", "@@ -1 +1 @@ f\x00(", "İ_ı", ".", "@")


@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from(PIECES)), max_size=30))
@settings(max_examples=200)
def test_names_of_any_text_fit_the_index(pieces: list[str]) -> None:
    text = "".join(pieces)
    for found in (find_identifiers(text), find_identifiers("", list_patch_names([text]))):
        assert found == sorted(set(found))
        assert all(name and "\x00" not in name and len(name) <= MAX_LENGTH for name in found)
        assert all(name == name.strip() for name in found)


@pytest.mark.parametrize(
    "unit", ["a", "a.", "a@", "_", "a/", "0f", "+-", "://", "@@ -1 +1 @@ " + "a" * 99]
)
def test_monotonous_text_is_read_in_linear_time(unit: str) -> None:
    # the square of a million steps would not end in this lifetime
    assert len(find_identifiers(unit * (1_000_000 // len(unit)))) <= MAX_IDENTIFIERS


@pytest.mark.parametrize(("text", "name"), [
    ("look at pg_catalog.pg_class", "pg_class"),
    ("set hnsw.ef_search to 100", "ef_search"),
    ("calls std::sort_heap", "sort_heap"),
])  # fmt: skip
def test_qualified_name_is_found_without_its_qualifier(text: str, name: str) -> None:
    assert name in find_identifiers(text)


# The rules as one would write them; those in the code say the same and begin with a character.
SQLSTATE = re.compile(
    rf"(?<![\w.,:/-])(?!\d\d000)(?:{room.SQLSTATE_CLASSES})[0-9A-Z]{{3}}(?![\w/-]|[.,:]\d)"
)
COMMIT = re.compile(r"(?<![\w-])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}(?![\w-])")


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [*"0123456789abcdefgABPX .,:/-_ö\n@", "40P01", "42000", "0123abc", "a" * 40, "1f" * 19]
        ),
        max_size=14,
    ).map("".join)
)
def test_codes_and_hashes_are_found_by_rule(text: str) -> None:
    assert room._SQLSTATE.findall(text) == SQLSTATE.findall(text)
    hashes = [x for x in room._HEX.findall(text) if not (x.isdigit() or x.isalpha())]
    assert hashes == COMMIT.findall(text)
