"""Pages of conversations of any size have the same rows, and no row is lost."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search import fulltext, retrieval
from mail_assets.search.conversations import SHOWN, group_rows, read_conversations
from mail_assets.search.highlights import Highlighter
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.matches import Candidate, MessageCopy
from mail_assets.search.page import HitReader, Page, ShownRows, StoredMessage
from mail_assets.search.query import ParsedQuery, Query
from mail_assets.search.response import ChunkHit, Hit, HitExplanation, Response
from mail_assets.search.retrieval import RankedMatches
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids

COPY = MessageCopy(ListMonth("dev", "2024-03"), 0)
WORDS = "one two three four five six seven eight nine ten"
RANKED = Query("x", ParsedQuery(["x"], [], [], [], [], []), [], ranks=True)


class Made(StoredMessage):
    """Hit that is made of a candidate only."""

    def __new__(cls, one: Candidate) -> "Made":
        hit = make_hit(one)
        columns = (one.text, hit.subject, hit.from_name, hit.from_email)
        highlighter = Highlighter({}, (), ())
        return super().__new__(cls, one, {one.copy: columns}, (), highlighter, "legs", None, ())

    def build(self) -> Hit:
        return make_hit(self.candidate)


class Ranked(HitReader):
    """Ranking without a database: the ids of candidates contain thread, number and text."""

    def __init__(self) -> None:
        """Without a connection."""

    def read(self, candidates: Sequence[Candidate], *_: Any, **__: Any) -> list[StoredMessage]:
        return [Made(one) for one in candidates]

    def read_threads(
        self, threads: Sequence[str], lists: Any, hits: Sequence[Hit], found: Any
    ) -> ShownRows:
        day = dt.datetime(2024, 3, 4, tzinfo=dt.UTC)
        first = ("root", "Ann", "a@b", day, "Hi", False)
        about = (9, 2, day, day, ["dev"], ["Ann", "Bo"], "s", *first)
        return ShownRows(dict.fromkeys(threads, about), (*hits,))


def make_candidate(number: int, thread: str | None, text: str = "", **fields: Any) -> Candidate:
    about: dict[str, Any] = {"score": 1 / (number + 1), "ranks": {"fulltext": number + 1}, **fields}
    return Candidate(f"{number}@{text or number}", COPY, thread, **about)


def make_hit(one: Candidate) -> Hit:
    number, _, text = one.message_id.partition("@")
    body = f"{WORDS} {text} " * 3
    chunk = ChunkHit(f"{number}#0", 0, body, ((0, len(body)),), 1.0, None, ())
    return Hit(
        message_id=one.message_id, lists=("dev",), month="2024-03", subject=f"s {text}",
        from_name="Ann", from_email="a@b", sent_at=f"2024-03-{int(number) % 28 + 1:02}T09:00:00Z",
        score=one.score, thread_id=one.thread_id, chunks=(chunk,), attachments=(),
        why=HitExplanation({}, (), None, 0.0), contested=one.text is not None, text=one.text or 1,
    )  # fmt: skip


def read(candidates: list[Candidate], offset: int, limit: int, pools: Sequence[int] = ()) -> Page:
    request = Request("x", offset=offset, limit=limit)
    found = RankedMatches(candidates, RANKED, pools=tuple(pools))
    return read_conversations(Ranked(), request, found, ["dev"])


def list_ids(page: Page) -> list[str]:
    named = [i for hit in page.hits for i in (hit.message_id, *hit.copies)]
    return named + [i for one in page.conversations for i in one.others]


#: Threads of ranked messages, None without a thread, and texts, two of which repeat.
RANKINGS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.sampled_from(["", "", "v", "w"])),
    max_size=30,
).map(lambda some: [make_candidate(n, *one) for n, one in enumerate(some)])


@given(RANKINGS, st.integers(1, 7))
def test_pages_of_any_size_have_the_same_rows(ranked: list[Candidate], size: int) -> None:
    whole = read(ranked, 0, 100)
    pages = [read(ranked, at, size) for at in range(0, 40, size)]
    rows = [one for page in pages for one in page.conversations]
    assert [(one.thread_id, one.best) for one in rows] == [
        (one.thread_id, one.best) for one in whole.conversations
    ]
    assert [i for page in pages for i in map(get_id, page.hits)] == [*map(get_id, whole.hits)]


def get_id(hit: Hit) -> str:
    return hit.message_id


def test_of_rows_after_the_page_only_repetitions_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []

    def build(one: Made) -> Hit:
        built.append(int(one.candidate.message_id.partition("@")[0]))
        return make_hit(one.candidate)

    monkeypatch.setattr(Made, "build", build)
    ranked = [make_candidate(n, f"t{n}", "v" if n in (0, 5) else "") for n in range(7)]
    page = read(ranked, 0, 2)
    assert built == [0, 1, 2, 5]
    assert page.hits[0].copies == ("5@v",)


@given(RANKINGS)
def test_every_message_of_a_ranking_is_in_one_row(ranked: list[Candidate]) -> None:
    page = read(ranked, 0, 100)
    assert sorted(list_ids(page)) == sorted(one.message_id for one in ranked)
    assert [i for one in page.conversations for i in one.best] == [*map(get_id, page.hits)]
    assert all(1 <= len(one.best) <= SHOWN for one in page.conversations)
    threads = [one.thread_id for one in page.conversations if one.thread_id]
    assert len({*threads}) == len(threads)


@given(RANKINGS, st.integers(0, 30), st.integers(1, 5))
def test_deeper_candidates_change_no_earlier_row(
    ranked: list[Candidate], first: int, size: int
) -> None:
    first = min(first, len(ranked))
    before = read(ranked[:first], 0, size, [first])
    after = read(ranked, 0, size, [first, len(ranked)])
    rows = [(one.thread_id, one.best) for one in after.conversations]
    known = [(one.thread_id, one.best) for one in before.conversations]
    assert rows[: len(known)] == known


def test_row_stands_where_its_best_message_does() -> None:
    threads = ["b", "a", "b", None, "a", "b", "c", "b"]
    page = read([make_candidate(n, one) for n, one in enumerate(threads)], 0, 10)
    assert [(one.thread_id, one.best, one.more) for one in page.conversations] == [
        ("b", ("0@0", "2@2"), 2),
        ("a", ("1@1", "4@4"), 0),
        (None, ("3@3",), 0),
        ("c", ("6@6",), 0),
    ]


def test_message_found_only_by_its_thread_is_not_shown() -> None:
    ranked = [make_candidate(0, "a"), make_candidate(1, "a", ranks={}), make_candidate(2, "b")]
    first, _ = read(ranked, 0, 10).conversations
    assert (first.best, first.more, first.others) == (("0@0",), 0, ("1@1",))


def test_versions_of_a_patch_leave_room_for_an_answer() -> None:
    ranked = [make_candidate(n, "a", text) for n, text in enumerate(["v", "v", "v", "", ""])]
    page = read(ranked, 0, 10)
    [row] = page.conversations
    assert (row.best, row.more) == (("0@v", "3@3"), 1)
    assert page.hits[0].copies == ("1@v", "2@v")


@pytest.mark.parametrize(
    ("threads", "rows"),
    [
        (["a", "b"], ["a"]),  # sent again, in another thread
        (["a", "a", "b", "b"], ["a"]),
        (["a", None], ["a"]),
    ],
)
def test_thread_of_repeated_messages_has_no_row(threads: list[str | None], rows: list[str]) -> None:
    texts = "vwvw" if len(threads) > 2 else "vv"
    ranked = [make_candidate(n, one, texts[n]) for n, one in enumerate(threads)]
    page = read(ranked, 0, 10)
    assert [one.thread_id for one in page.conversations] == rows
    assert sorted(list_ids(page)) == sorted(one.message_id for one in ranked)


def test_thread_with_new_messages_keeps_its_row() -> None:
    ranked = [make_candidate(0, "a", "v"), make_candidate(1, "b", "v"), make_candidate(2, "b")]
    assert [one.best for one in read(ranked, 0, 10).conversations] == [("0@v",), ("1@v", "2@2")]


def test_contested_text_has_a_row_beside_the_thread_of_its_id() -> None:
    # the name of the thread is an id that a stranger's text also has
    ranked = [make_candidate(0, "1@1"), make_candidate(1, None, text=""), make_candidate(2, "1@1")]
    ranked[1] = ranked[1]._replace(text=2)
    rows = read(ranked, 0, 10).conversations
    assert [(one.thread_id, one.best) for one in rows] == [
        ("1@1", ("0@0", "2@2")),
        (None, ("1@1",)),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_row_describes_its_thread(
    search: Search, connection: psycopg.Connection, mode: str
) -> None:
    found = search(QUERY, mode=mode, limit=5)
    assert found.conversations
    for one in found.conversations:
        rows = connection.execute(THREAD, {"thread_id": one.thread_id}).fetchall()
        sent = [row[2].strftime("%Y-%m-%dT%H:%M:%SZ") for row in rows]
        assert one.first is not None
        assert (one.first.message_id, one.first.from_name) == rows[0][:2]
        assert (one.messages, one.people) == (len(rows), len({row[3] for row in rows}))
        assert (one.first_sent_at, one.last_sent_at) == (min(sent), max(sent))
        assert one.names == tuple(dict.fromkeys(row[1] for row in rows))[:4]
        assert one.first.text
        assert {*one.best, *one.others} <= {row[0] for row in rows}


THREAD = (
    "select t.message_id, m.from_name, m.sent_at, m.from_email from threads t"
    " cross join lateral first_copy(t.message_id) m where thread_id = %(thread_id)s"
    " order by t.position"
)


def test_row_is_of_the_lists_that_are_asked(search: Search) -> None:
    for name in ("harbor-dev", "harbor-users"):
        for one in search(f"lease list:{name}", limit=20).conversations:
            assert one.lists == (name,)


def test_pasted_id_is_a_row_of_its_thread(search: Search) -> None:
    [one] = search(f"<{ROOT}>").conversations
    assert (one.best, one.more) == ((ROOT,), 0)
    assert one.messages > 1


def turn(search: Search, size: int, **fields: Any) -> list[Response]:
    pages = [search(limit=size, **fields)]
    while not pages[-1].short:
        pages.append(search(limit=size, offset=size * len(pages), **fields))
    return pages


def rows_of(responses: Iterable[Response]) -> list[tuple[str | None, tuple[str, ...]]]:
    return [(one.thread_id, one.best) for page in responses for one in page.conversations]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "query",
    [
        *(f"{QUERY} mode:{mode}" for mode in MODES),
        *(f"lease -subject:a mode:{mode}" for mode in MODES),  # 7 of 80 pass
        "lease sort:date",
        "from:ingrid",
    ],
)
def test_pages_have_the_same_rows_and_total_at_any_depth(
    search: Search, monkeypatch: pytest.MonkeyPatch, query: str, size: int
) -> None:
    for room, name in ((retrieval, "FULLTEXT_DEPTH"), (retrieval, "SEMANTIC_DEPTH"),
                       (retrieval, "PAGE_DEPTH"), (fulltext, "ENOUGH")):  # fmt: skip
        monkeypatch.setattr(room, name, 4)
    monkeypatch.setattr(retrieval, "DEEPER", 2)
    [whole] = turn(search, 100, query=query, facets=True)
    pages = turn(search, size, query=query, facets=True)
    assert rows_of(pages) == rows_of([whole])
    assert len(pages) > (2 if "-" not in query else 0)
    assert len({(page.facets.total, page.facets.at_least) for page in pages if page.facets}) == 1


def test_messages_have_no_conversations(search: Search) -> None:
    found = search(QUERY, group="message")
    assert found.conversations == ()
    assert len({*ids(found)}) == len(found.hits) == 10


def test_rows_are_grouped_in_the_order_of_their_pools() -> None:
    ranked = [make_candidate(n, one) for n, one in enumerate("abab")]
    first, second = group_rows(ranked, [2, 4])
    assert [len(row.best) for row in (first, second)] == [1, 1]
    assert [len(row.late) for row in (first, second)] == [1, 1]
