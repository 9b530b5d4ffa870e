"""Identifiers in texts and diffs."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.text import identifiers as room
from mail_assets.text.identifiers import MAX_IDENTIFIERS, MAX_LENGTH, find_identifiers

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
            {"src/backend/access/heap/heapam.c", "heapam.c", "heapam"},
        ),
        ("at heapam.c:2345", {"heapam.c", "heapam"}),
        ("in /etc/postgresql.conf,", {"etc/postgresql.conf", "postgresql.conf", "postgresql"}),
        ("raise work_mem", {"work_mem", "work", "mem"}),
        ("pg_stat_statements.track = all", {"pg_stat_statements.track", "pg_stat_statements"}),
        ("HEAP_XMIN_FROZEN", {"heap_xmin_frozen", "heap", "xmin", "frozen"}),
        ("x->tts_values[0]", {"tts_values", "tts", "values"}),
        ("std::vector", {"std::vector", "std", "vector"}),
        ("obj.__init__(self)", {"obj.__init__"}),
        ("ERROR: 42P01: no such table", {"42p01"}),
        ("SQLSTATE 23505", {"23505"}),
        ("fixed in 8f3a2b1", {"8f3a2b1"}),
        ("range abc1234..def5678", {"abc1234", "def5678"}),
        ("在pg_class表中", {"pg_class", "class"}),
        ("40P01エラー", {"40p01"}),
        ("8f3a2b1에서", {"8f3a2b1"}),
        ("看src/zoo/cebra.c：", {"src/zoo/cebra.c", "cebra.c", "cebra"}),
        ("https://example.org/docs/sql-select.html", {"docs/sql-select.html", "sql-select.html"}),
        (UNIFIED, {"heapam.c", "heap_multi_insert", "restore_point", "0123abc"}),
    ],
)
def test_names_are_found(text: str, expected: set[str]) -> None:
    assert expected <= set(find_identifiers(text))


@pytest.mark.parametrize(
    "text",
    [
        "A plain sentence, with an end.",
        "e.g. this, i.e. that",
        "it is _very_ slow",
        "1.5 seconds at 12:30 on 2004/05/14",
        "20000 rows, 10,000 more",
        "99999 is of no class",
        "write to somebody@lists.example.org",
        "facade defaced 1234567",
        "550e8400-e29b-41d4-a716-446655440000",
        "----- _____ ..... /////",
        "",
        "it works\n--- and so on, as ever",
        "写信给somebody@lists.example.org吧，见说明.txt",
    ],
)
def test_ordinary_words_are_no_names(text: str) -> None:
    assert find_identifiers(text) == []


def test_diff_gives_file_and_function_names_but_no_code() -> None:
    assert find_identifiers("", [UNIFIED]) == [
        "heap",
        "heap_multi_insert",
        "heapam",
        "heapam.c",
        "insert",
        "multi",
        "point",
        "restore",
        "restore_point",
        "src/backend/access/heap/heapam.c",
    ]
    assert find_identifiers("", [CONTEXT]) == [
        "handler",
        "plperl",
        "plperl.c",
        "plperl_trigger_handler",
        "src/pl/plperl/plperl.c",
        "trigger",
    ]


def test_letters_of_unspaced_scripts_are_no_part_of_a_name() -> None:
    assert find_identifiers("在pg_class表中") == ["class", "pg_class"]
    diff = "diff --git a/文档/说明_a1.txt b/文档/说明_a1.txt\n"
    assert {"文档", "说明", "_a1.txt"} <= {*find_identifiers("", [diff])}


def test_file_without_directory_or_suffix_is_found() -> None:
    assert "makefile" in find_identifiers("", ["--- Makefile\n+++ Makefile\n@@ -1 +1 @@\n-a\n+b\n"])


def test_query_meets_the_text_it_was_copied_from() -> None:
    text = "autovacuum_naptime is read in src/backend/postmaster/autovacuum.c"
    assert find_identifiers(text) == find_identifiers(text)
    assert set(find_identifiers("postmaster/autovacuum.c")) & set(find_identifiers(text)) == {
        "autovacuum.c",
        "autovacuum",
    }


def test_diffs_go_first_among_too_many_names() -> None:
    found = find_identifiers(" ".join(f"name_{i:04}" for i in range(2000)), [UNIFIED])
    assert len(found) == MAX_IDENTIFIERS
    assert "heap_multi_insert" in found


def test_name_too_long_for_the_index_is_left_out() -> None:
    longest = "x_" + "y" * (MAX_LENGTH - 2)
    assert longest in find_identifiers(longest)
    assert find_identifiers("x" + longest) == ["y" * (MAX_LENGTH - 2)]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=20),
            st.sampled_from(
                [
                    "a_b",
                    "/",
                    "::",
                    "\x00",
                    "--- a/\x00x\n",
                    "\n",
                    "@@ -1 +1 @@ f\x00(",
                    "İ_ı",
                    ".",
                    "@",
                ]
            ),
        ),
        max_size=30,
    )
)
@settings(max_examples=200)
def test_names_of_any_text_fit_the_index(pieces: list[str]) -> None:
    text = "".join(pieces)
    for found in (find_identifiers(text), find_identifiers("", [text])):
        assert found == sorted(set(found))
        assert all(name and "\x00" not in name and len(name) <= MAX_LENGTH for name in found)
        assert all(name == name.strip() for name in found)


@pytest.mark.parametrize(
    "unit", ["a", "a.", "a@", "_", "a/", "0f", "+-", "://", "@@ -1 +1 @@ " + "a" * 99]
)
def test_monotonous_text_is_read_in_linear_time(unit: str) -> None:
    # the square of a million steps would not end in this lifetime
    assert len(find_identifiers(unit * (1_000_000 // len(unit)))) <= MAX_IDENTIFIERS


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("look at pg_catalog.pg_class", "pg_class"),
        ("set hnsw.ef_search to 100", "ef_search"),
        ("calls std::sort_heap", "sort_heap"),
    ],
)
def test_qualified_name_is_found_without_its_qualifier(text: str, name: str) -> None:
    assert name in find_identifiers(text)


# The rules as one would write them; those in the code say the same and begin with a character.
SQLSTATE = re.compile(
    rf"(?<![\w.,:/-])(?!\d\d000)(?:{room.SQLSTATE_CLASSES})[0-9A-Z]{{3}}(?![\w/-]|[.,:]\d)"
)
COMMIT = re.compile(r"(?<![\w-])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}(?![\w-])")


@settings(max_examples=500)
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
    assert list(room._commits(text)) == COMMIT.findall(text)
    assert room._without_addresses(text) == room._ADDRESS_OR_HOST.sub(" ", text)
