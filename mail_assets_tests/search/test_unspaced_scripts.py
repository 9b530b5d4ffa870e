"""Text in scripts without spaces between words is found by any part of it."""

import unicodedata

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.language.request import Request
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import ids

#: Texts in which no pair of letters occurs twice.
TEXTS = {
    "zh": "今天发现数据库索引损坏了，怎么恢复备份？",
    "zh-names": "在pg_class表中查到40P01错误，出现out of memory异常，内存泄漏。",
    "zh-tw": "資料庫的備份檔案已經遺失",
    "ja": "文字コードをUTF-8に変換すると40P01エラーが出ます",
    "ja-half": "ｶﾀｶﾅの数据とデータベースのバックアップ",
    "ko": "어제 데이터베이스의 백업을 했습니다 40P01이라",
    "th": "กรุณาสำรองฐานข้อมูลก่อนเปลี่ยนรุ่น",
    "lo": "ກະລຸນາສຳຮອງຂໍ້ມູນ",
    "km": "សូមបម្រុងទុកទិន្នន័យ",
    "my": "ဒေတာကိုသိမ်းပါ",
    "rare": "𠀀𠀁𠀂葛󠄀城",
    "latin": "The table pg_class, 40P01: it ran out of memory once more.",
    "pieces": "A class of pg, no name.",
    "tag": 'It says <pyHandle:224> in <tr model="deferredModel">, see <https://example.org/lore>.',
}


def search(text_searcher: Searcher, query: str) -> Response:
    return text_searcher.search(Request(query, mode="fulltext", limit=50, group="message"))


def find(text_searcher: Searcher, query: str) -> set[str]:
    return {one.removesuffix("@example.org") for one in ids(search(text_searcher, query))}


def find_by_sql(text_db: psycopg.Connection, query: str) -> set[str]:
    rows = text_db.execute("select message_id from search_fulltext(%s, 50)", [query])
    return {one.removesuffix("@example.org") for (one,) in rows}


def is_letter(one: str) -> bool:
    return one.isalpha() or unicodedata.category(one).startswith("M")


def letters(text: str) -> list[str]:
    """Return the letters of a text, each with its marks."""
    found: list[str] = []
    for one in text:
        if found and unicodedata.category(one).startswith("M"):
            found[-1] += one
        else:
            found.append(one)
    return found


#: Texts with runs of such letters between other characters.
RUNS = [
    run
    for text in TEXTS.values()
    for run in "".join(one if ord(one) > 0xE00 and is_letter(one) else " " for one in text).split()
    if len(letters(run)) > 1
]


@st.composite
def parts(draw: st.DrawFn) -> str:
    """Strategy for parts of a run of such letters, at least two letters long."""
    run = letters(draw(st.sampled_from(RUNS)))
    start = draw(st.integers(0, len(run) - 2))
    return "".join(run[start : draw(st.integers(start + 2, len(run)))])


@settings(max_examples=40)
@given(parts())
def test_text_is_found_by_any_part_of_it(
    text_searcher: Searcher, text_db: psycopg.Connection, part: str
) -> None:
    having = {name for name, text in TEXTS.items() if part in text}
    assert having
    assert having <= find(text_searcher, part)
    for query in (f'"{part}"', f"{part}*", f"{part} sort:date"):
        assert find(text_searcher, query) == having
    assert find(text_searcher, f"-{part} list:lists") == {*TEXTS} - having
    assert find(text_searcher, f'-"{part}" 40P01') == find(text_searcher, "40P01") - having
    assert having <= find_by_sql(text_db, part)
    assert find_by_sql(text_db, f'"{part}"') == having
    assert find_by_sql(text_db, f"-{part} 40P01") == find_by_sql(text_db, "40P01") - having


@given(parts())
def test_highlight_is_the_searched_part(text_searcher: Searcher, part: str) -> None:
    for hit in search(text_searcher, f'"{part}"').hits:
        (chunk,) = hit.chunks
        assert [text for text, marked in chunk.pieces() if marked] == [part]
        assert hit.why.words == (part,)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # text in angle brackets is ordinary text
        ('"deferredModel"', {"tag"}),
        ("-deferredModel says", set()),
        ("<pyHandle:224>", {"tag"}),
        ('"<tr model"', {"tag"}),
        # names next to letters of such scripts are found as written
        ('"pg_class"', {"zh-names", "latin"}),
        ("pg_class sort:date", {"zh-names", "latin"}),
        ("40P01", {"zh-names", "ja", "ko", "latin"}),
        ('"out of memory"', {"zh-names", "latin"}),
        ('"UTF-8"', {"ja"}),
        # a prefix is one letter of ideographs and kana, two of other scripts
        ("損* or 损*", {"zh"}),
        ("バ*", {"ja-half"}),
        ("백업*", {"ko"}),
        ("-数* sort:date list:lists", {*TEXTS} - {"zh", "ja-half"}),
        ("40P01エ*", {"ja"}),
        ("UTF-8に変*", {"ja"}),
        ("表中* or 檔案*", {"zh-names", "zh-tw"}),
        # several words, any of which may be missing
        ("备份 遺失", {"zh", "zh-tw"}),
        ("备份 遺失 sort:date", set()),
        ("-(备份 or 遺失) list:lists 40P01", {"zh-names", "ja", "ko", "latin"}),
        ('"pg_class表中查到40P01"', {"zh-names"}),
        ('"the 数据库"', set()),
    ],
)
def test_queries_mean_the_same_in_every_script(
    text_searcher: Searcher, query: str, expected: set[str]
) -> None:
    assert find(text_searcher, query) == expected


def test_name_next_to_unspaced_letters_is_found(text_searcher: Searcher) -> None:
    hits = search(text_searcher, "pg_class").hits
    assert {one.message_id for one in hits[:2]} == {"zh-names@example.org", "latin@example.org"}
    assert all(one.why.words == ("pg_class",) for one in hits[:2])


@pytest.mark.parametrize("query", ["<pyHandle:224>", '"deferredModel"'])
def test_tags_are_text_in_sql_too(text_db: psycopg.Connection, query: str) -> None:
    assert find_by_sql(text_db, query) == {"tag"}


def test_words_that_no_message_has_are_named(text_searcher: Searcher) -> None:
    [note] = search(text_searcher, "数据库 恐龙 백업 memory dinosaur").notes
    assert note.startswith("No message has 恐龙, dinosaur.")
