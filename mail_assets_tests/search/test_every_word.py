"""Every word that a reader sees finds its message, in each spelling of the text."""

import psycopg
import pytest

from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import ids

#: Name of a message -> its text, and the tokens that a reader could ask; no other message has them.
SOUGHT = {
    "latin": (
        "The planner/optimizer reads ~/.pgpass, then src/backend/access/heap/heapam.c: see\n"
        "https://zulip.example.net/topic/9165?near=deadlock_timeout#frag-ment and 8f3a2b1.\n"
        "Call getUserName() or HTTPServerFactory; pg_stat_statements.track is read-only since\n"
        "9.6.1 (not 8.3beta2), is_not_null and to_date stay. Write to tgl@sss.pgh.example!\n"
        "--enable-debug or CFLAGS=-Wall; std::vector<int>; O\u2019Brien\u2019s\n"
        "data\u200bbase, soft\u00adware, "
        "\x1b[31mERROR\x1b[0m 40P01 in Ｐｏｓｔｇｒｅｓ and ﬁle naïve Björn",
        "planner optimizer planner/optimizer pgpass .pgpass ~/.pgpass heapam heapam.c backend "
        "access/heap src/backend/access/heap/heapam.c zulip zulip.example.net example.net topic "
        "9165 deadlock deadlock_timeout frag frag-ment 8f3a2b1 8f3a2b1c90d4 getUserName "
        "getusername user HTTPServerFactory http server pg_stat_statements statements statement "
        "pg_stat_statements.track track read-only 9.6 9.6.1 v9.6 8.3 8.3beta2 is_not_null to_date "
        "tgl sss tgl@sss.pgh.example enable-debug --enable-debug CFLAGS Wall std::vector vector "
        "O'Brien O\u2019Brien brien database software error 40P01 40p01 postgres file naïve naive "
        "Björn bjorn Bjo\u0308rn",
    ),
    "cyrillic": ("Сервер базы данных упал: ёлка, соединение/откат, файл настройки.конф",
                 "сервер СЕРВЕР ёлка елка соединение откат соединение/откат настройки.конф"),
    "greek": ("Η βάση δεδομένων σταμάτησε", "βάση βαση δεδομένων ΣΤΑΜΆΤΗΣΕ"),
    "arabic": ("قاعدة البيانات اللُغَة می\u200cخواهم ١٢٧٣٤ و٨٫٣ و ٧.٥",
               "قاعدة البيانات اللُغَة اللغة میخواهم خواهم ١٢٧٣٤ 12734 7.5"),
    "devanagari": ("यह डेटाबेस हिन्दी में है, फ़ाइल", "डेटाबेस हिन्दी फ़ाइल"),
    "chinese": ("今天发现数据库索引损坏了，用pg_klass恢复",
                "数据库 数据 索引损坏 恢复 pg_klass klass"),
    "korean": ("어제 데이터베이스의 백업을 했습니다", "데이터베이스 백업 백업을"),
    "thai": ("กรุณาสำรองฐานข้อมูลก่อนเปลี่ยนรุ่น", "สำรอง ฐานข้อมูล"),
    "german": ("Die Müllabfuhr und Größenwahn, Straßenbahn",
               "Müllabfuhr mullabfuhr Größenwahn strassenbahn Grössenwahn grossenwahn"),
    "turkish": ("\u0130stanbul ve ISPARTA, \u0131l\u0131k I\u011fd\u0131r, izmir", ""),
    "common": ("They don't know whether AT&T will be on/off: it is to be, or not to be", ""),
    "ids": (
        "8f3a2c1c90d4\n8f3a2d1c90d4\n8f4a2b1c90d4\n"
        "https://git.zoo.example/zoo.git/commit/?h=v3&id=7d1e5f20a9c4b8e6\n"
        "https://git.zoo.example/?id=6b2c4e10d8f3 https://git.zoo.example/c/5c0d9e1f3a7b.\n"
        "https://git.zoo.example/zoo#4a9f8b7c6d5e (https://git.zoo.example/3e8d7c6b..2d7c6b5a)\n"
        "zoo-1f6e5d4c.tar.gz 0b9a8c7d-6e5f-4a3b-9c2d-8f7e6d5c4b3a",
        "7d1e5f2 7d1e5f20a9c4b8e6aa 6b2c4e10 5c0d9e1 4a9f8b7 3e8d7c6 2d7c6b5 1f6e5d4 0b9a8c7 "
        "0b9a8c7d-6e5f-4a3b-9c2d-8f7e6d5c4b3a zoo-1f6e5d4c.tar.gz",
    ),
    "long": (f"{'pool = 3.14 ' * 30_000} 18502.559041 pool_after Gr\u00fc\u00dfe",
             "18502.559041 18502 pool_after Gr\u00fc\u00dfe"),
    "signed": (
        "Rewritten in C++17 and C# from c and p++, with g++-12 for .NET and (F#), on\n"
        "glibc2.38, python3.11 and ext4; see notepad++.",
        "C++ C++17 C# c# g++ .NET .Net F# notepad++ p p++ glibc glibc2.38 python python3.11 ext "
        "ext4",
    ),
    "decoy": ("The date of the name, a class of statistics, not null but 1.9.6, 19.6; net F G", ""),
}  # fmt: skip
TEXTS = {name: text for name, (text, _) in SOUGHT.items()}
TOKENS = [(name, token) for name, (_, tokens) in SOUGHT.items() for token in tokens.split()]


def find(text_searcher: Searcher, query: str) -> list[str]:
    found = text_searcher.search(Request(query, mode="fulltext", limit=50, group="message"))
    return [one.removesuffix("@example.org") for one in ids(found)]


@pytest.mark.parametrize(("name", "token"), TOKENS)
def test_token_finds_its_message_in_every_way(
    text_searcher: Searcher, text_db: psycopg.Connection, name: str, token: str
) -> None:
    asked = token if not token.startswith("-") else f'"{token}"'
    assert find(text_searcher, asked)[0] == name
    assert name in find(text_searcher, f"{asked} sort:date")
    assert name in find(text_searcher, f'"{token}"')
    assert name not in find(text_searcher, f'-"{token}" list:lists')
    shown_in_sql = not {*token.lower().split("@")} & {"tgl", "sss"}
    by_sql = text_db.execute(
        "select message_id from search_fulltext(%s, 50)", [f'"{token}"']
    ).fetchall()
    assert (f"{name}@example.org",) in by_sql or not shown_in_sql


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"date of the name"', ["decoy"]),
        ('"null but"', ["decoy"]),
        ("-.NET net", ["decoy", "latin"]),
        ("-F# f", ["decoy"]),
        ("g++", ["signed"]),
        ("C# sort:date", ["signed"]),
        ("ext3", []),
        ('"is null"', []),
        ("-to_date list:lists 1.9.6", ["decoy"]),
        ('-"9.6" 1.9.6', ["decoy"]),
        ("statist*", ["decoy"]),
        ("statements*", ["latin"]),
        ('"getUser"', ["latin"]),
        ('"ServerFactory"', ["latin"]),
    ],
)
def test_similar_tokens_do_not_match(text_searcher: Searcher, query: str, found: list[str]) -> None:
    assert find(text_searcher, query) == found


@pytest.mark.parametrize(("name", "query"), [
    *[("turkish", one) for one in ("istanbul", "\u0130STANBUL", "ISPARTA", "\u0131sparta")],
    *[("turkish", one) for one in ("ilik", "\u0131l\u0131k", "\u0131\u011fd\u0131r", "\u0130zmir")],
    ("thai", "ส\u0e4d\u0e32รอง"),
])  # fmt: skip
def test_query_finds_other_spellings_of_a_word(
    text_searcher: Searcher, name: str, query: str
) -> None:
    assert find(text_searcher, query)[0] == name
    assert find(text_searcher, f"{query} sort:date") == [name]


@pytest.mark.parametrize(
    "query", ["AT&T", "don't", "don\u2019t", '"to be, or not to be"', '"it is to be"']
)
@pytest.mark.parametrize("mode", ["fulltext", "hybrid"])
def test_stop_words_that_follow_each_other_are_found(
    text_searcher: Searcher, query: str, mode: str
) -> None:
    found = text_searcher.search(Request(query, mode=mode))
    assert ids(found) == ["common@example.org"]
    assert "only very common words" in found.notes[0]
    assert found.without_quotes == ()


@pytest.mark.parametrize("mode", ["fulltext", "hybrid"])
@pytest.mark.parametrize(
    ("address", "is_known"), [("tgl@sss.pgh.example", True), ("zz@garble.org", False)]
)
def test_query_of_an_address_says_what_was_searched(
    text_searcher: Searcher, address: str, mode: str, *, is_known: bool
) -> None:
    notes = text_searcher.search(Request(f"<{address}>", mode=mode)).notes
    assert f"{address} was searched as text. For mail from it, write from:{address}." in notes
    assert (f"No message has {address} in its text." in notes) != is_known
    assert not any("very common words" in note for note in notes)
    [hidden] = text_searcher.search(Request(address, mode="fulltext", names_only=True)).notes
    assert hidden == f"Addresses are hidden here and not searched, as in {address}."


@pytest.mark.parametrize("query", ["8f3a2b1", "8f3a2b1c90d4", '"8f3a2b1c90d4"', "(8f3a2b1c)"])
def test_id_of_a_commit_finds_nothing_by_meaning(text_searcher: Searcher, query: str) -> None:
    found = text_searcher.search(Request(query, mode="hybrid", group="message"))
    assert ids(found) == ["latin@example.org"]
    assert found.notes == ()


def test_letter_alone_is_asked_with_a_star(text_searcher: Searcher) -> None:
    for query in ("\u5e93", "\u5e93 sort:date"):
        found = text_searcher.search(Request(query, mode="fulltext"))
        assert found.notes == (
            "\u5e93 alone is not in the index, which has pairs of letters: write \u5e93*.",
        )
    assert find(text_searcher, "\u5e93*") == ["chinese"]
