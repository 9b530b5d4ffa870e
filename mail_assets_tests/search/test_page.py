"""Pages follow one another, threads are one hit where hits are grouped, and scores can be cut.

[test_facets] Facets count what matches, and say where they stopped.

[test_near_duplicates] Near-duplicates are one hit, and only these.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search import filters, fulltext, page, retrieval
from mail_assets.search import page as facets_room
from mail_assets.search.ask_indexes import Depths, Legs, Rankings
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.language.request import GROUPS, MODES, Group
from mail_assets.search.live_index import LookedUp
from mail_assets.search.page import (
    FOLDED,
    MAX_OF_THREAD,
    MIN_OVERLAP,
    Folder,
    name_rest,
    select_of_threads,
)
from mail_assets.search.response import ChunkHit, Hit, HitExplanation, NewerCopy, Response
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", GROUPS)
def test_pages_follow_one_another(search: Search, mode: str, group: str) -> None:
    whole = ids(search(QUERY, mode=mode, limit=12, group=group))
    pages = [ids(search(QUERY, mode=mode, limit=4, offset=at, group=group)) for at in (0, 4, 8)]
    assert whole
    assert [i for page in pages for i in page] == whole


@pytest.mark.parametrize("mode", MODES)
def test_a_thread_is_one_hit_that_names_the_others_found_in_it(search: Search, mode: str) -> None:
    hits = search(QUERY, mode=mode, limit=20, group="thread").hits
    threads = [h.thread_id for h in hits]
    assert len({*threads}) == len(threads)
    assert any(h.in_thread for h in hits)
    found = {*ids(search(QUERY, mode=mode, limit=100))}
    assert {i for h in hits[:3] for i in (h.message_id, *h.in_thread)} & found


@pytest.mark.parametrize("mode", MODES)
def test_a_thread_has_three_hits_at_most_and_the_first_names_the_rest(
    search: Search, mode: str
) -> None:
    few = search(QUERY, mode=mode, limit=100).hits
    every = search(QUERY, mode=mode, limit=100, group="message").hits
    threads = Counter(hit.thread_id for hit in few)
    assert max(threads.values()) == MAX_OF_THREAD[Group.few]
    assert max(Counter(hit.thread_id for hit in every).values()) > MAX_OF_THREAD[Group.few]
    in_both = {*ids_of(few)} & {*ids_of(every)}
    assert [i for i in ids_of(few) if i in in_both] == [i for i in ids_of(every) if i in in_both]
    named = {i for hit in few for i in (hit.message_id, *hit.copies, *hit.in_thread)}
    assert {i for hit in every for i in (hit.message_id, *hit.copies)} <= named
    first = [
        hit for n, hit in enumerate(few) if hit.thread_id not in {h.thread_id for h in few[:n]}
    ]
    assert [hit for hit in few if hit.in_thread] == [hit for hit in first if hit.in_thread]


def ids_of(hits: Iterable[Hit]) -> list[str]:
    return [hit.message_id for hit in hits]


def test_what_is_found_in_one_thread_or_listed_by_date_is_not_cut(search: Search) -> None:
    thread = search(QUERY, limit=1).hits[0].message_id
    assert len(search(QUERY, thread=thread, limit=50).hits) > MAX_OF_THREAD[Group.few]
    newest = search("after:2000", limit=100)
    assert ids(newest) == ids(search("after:2000", limit=100, group="message"))


def turn_pages(search: Search, query: str, size: int, group: str) -> list[Response]:
    """Ask for pages until one says that it is the last."""
    pages = [search(query, limit=size, group=group)]
    while not pages[-1].short:
        at = size * len(pages)
        pages.append(search(query, limit=size, offset=at, group=group))
    return pages


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("query", ["list:harbor-dev", "from:example.org lease sort:date"])
@pytest.mark.parametrize("overlap", [0, MIN_OVERLAP])
def test_a_list_by_date_is_reached_whole_by_pages_of_any_size(
    search: Search,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    size: int,
    group: str,
    overlap: float,
) -> None:
    # at 0 whatever one author sent with one subject is one hit
    monkeypatch.setattr(page, "MIN_OVERLAP", overlap)
    whole = search(query, limit=100, group=group, facets=True)
    assert whole.facets is not None
    hits = [hit for page in turn_pages(search, query, size, group) for hit in page.hits]
    assert ids_of(hits) == ids(whole)
    named = [i for hit in whole.hits for i in (hit.message_id, *hit.copies, *hit.in_thread)]
    assert len({*named}) == len(named) == whole.facets.total
    if group == Group.thread and overlap:
        rows = connection.execute(THREADS, {"ids": named}).fetchall()
        assert sorted(hit.thread_id or "" for hit in hits) == sorted(thread for (thread,) in rows)


THREADS = "select distinct thread_id from threads where message_id = any(%(ids)s)"


@pytest.mark.parametrize("size", [1, 7])
def test_pages_by_meaning_follow_one_another_however_deep(
    search: Search, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 4)
    # an index that finds others when it is asked deeper, as approximate ones do
    monkeypatch.setattr(retrieval, "DEEPER", 3)
    asked = Legs.rank

    def rank(legs: Legs, looked_up: LookedUp, depths: Depths) -> Rankings:
        found = asked(legs, looked_up, depths)
        return found._replace(semantic=found.semantic[depths.vectors // 10 :])

    monkeypatch.setattr(Legs, "rank", rank)
    whole = ids(search(QUERY, mode="semantic", limit=42, group="message"))
    pages = [
        ids(search(QUERY, mode="semantic", limit=size, offset=at, group="message"))
        for at in range(0, 42, size)
    ]
    assert [i for page in pages for i in page] == whole
    assert len({*whole}) == len(whole) > 20


@pytest.mark.parametrize("size", [2, 3])
def test_pages_by_words_reach_all_that_pass_a_filter_behind_the_index(
    search: Search, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    query = "lease worker job queue harbor -subject:a mode:fulltext"  # 7 of 80 pass
    whole = ids(search(query, limit=100, group="message"))
    monkeypatch.setattr(fulltext, "ENOUGH", 1)
    monkeypatch.setattr(retrieval, "PAGE_DEPTH", 1)
    pages = turn_pages(search, query, size, "message")
    assert [i for page in pages for i in ids(page)] == whole
    assert len(pages) > 2


COPY = MessageCopy(ListMonth("dev", "2024-03"), 0)


@given(st.lists(st.sampled_from("abc")), st.sampled_from([1, 3, None]))
def test_the_best_of_each_thread_are_hits_and_nobody_is_lost(
    threads: list[str], most: int | None
) -> None:
    ranked = [Candidate(str(n), COPY, thread, 1.0) for n, thread in enumerate(threads)]
    selected, rest = select_of_threads(ranked, most)
    found = [one.message_id for one in selected] + [i for left in rest.values() for i in left]
    assert sorted(found) == sorted(one.message_id for one in ranked)
    assert selected == [one for one in ranked if one in selected]
    if most and len({*threads}) > 1:
        assert max(Counter(one.thread_key for one in selected).values()) <= most


def test_what_is_asked_for_deeper_does_not_say_whether_all_is_of_one_thread() -> None:
    ranked = [Candidate(str(n), COPY, "a" if n < 5 else "b", 1.0) for n in range(7)]
    assert select_of_threads(ranked[:5], 3, 5) == (ranked[:5], {})
    assert select_of_threads(ranked, 3, 5) == (ranked, {})
    assert select_of_threads(ranked, 3)[0] == [*ranked[:3], *ranked[5:]]


@pytest.mark.parametrize(
    ("mode", "query"),
    [("fulltext", "upgrade"), ("semantic", "completed jobs leave the hot table")],
)
def test_pages_follow_one_another_where_what_is_found_first_is_of_one_thread(
    search: Search, monkeypatch: pytest.MonkeyPatch, mode: str, query: str
) -> None:
    for name in ("PAGE_DEPTH", "SEMANTIC_DEPTH"):
        monkeypatch.setattr(retrieval, name, 3)
    for name in ("MESSAGES_OF_A_HIT", "CHUNKS_OF_A_HIT"):
        monkeypatch.setattr(retrieval, name, 1)
    monkeypatch.setitem(MAX_OF_THREAD, Group.few, 2)
    whole = search(query, mode=mode, limit=6).hits
    pages = [search(query, mode=mode, limit=3, offset=at).hits for at in (0, 3)]
    assert [hit.message_id for page in pages for hit in page] == ids_of(whole)
    assert len({hit.thread_id for hit in whole[:3]}) == 1 < len({hit.thread_id for hit in whole})


def test_a_further_message_that_its_thread_alone_brings_gives_its_place_to_others() -> None:
    own = {"first": 0.2, "second": 0.05, "third": 0.04, "fourth": 0.0, "other": 0.1}
    ranked = [
        Candidate(name, COPY, "b" if name == "other" else "a", 0.5 + claim, thread_score=0.5)
        for name, claim in own.items()
    ]
    selected, rest = select_of_threads(ranked, 3)
    assert [one.message_id for one in selected] == ["first", "second", "other"]
    assert rest == {"a": ["third", "fourth"]}


@pytest.mark.parametrize("query", ["from:ingrid", "lease sort:date", "list:harbor-dev"])
def test_a_list_by_date_has_no_scores_and_is_not_cut_by_one(search: Search, query: str) -> None:
    whole = search(query, limit=20, facets=True)
    found = search(query, limit=20, facets=True, min_score=0.2)
    assert ids(found) == ids(whole) != []
    assert found.facets == whole.facets
    assert ids(search(f"{query} score:0.2", limit=20)) == ids(whole)


def test_a_minimum_score_cuts_the_end_and_says_short(search: Search) -> None:
    whole = search(QUERY, mode="semantic", limit=20).hits
    least = whole[5].score
    cut = search(QUERY, mode="semantic", limit=20, min_score=least)
    assert ids(cut) == [h.message_id for h in whole if h.score >= least]
    assert cut.short


ROWS = """
select m.message_id, m.list, extract(year from m.sent_at at time zone 'UTC')::text,
       lower(m.from_email), m.in_reply_to <> '{}' or m.refs <> '{}',
       to_char(m.sent_at at time zone 'UTC', 'YYYY-MM')
  from messages m
"""


def count(connection: psycopg.Connection, where: str) -> dict[str, Any]:
    """Count the messages that meet a condition, in Python."""
    rows = connection.execute(f"{ROWS} where {where}").fetchall()

    def by(column: int) -> dict[Any, int]:
        return Counter(value for _, value in {(row[0], row[column]) for row in rows})

    replies = by(4)
    return {
        "total": len({row[0] for row in rows}),
        "lists": by(1),
        "years": by(2),
        "authors": by(3),
        "months": by(5),
        "kinds": {"reply": replies.get(True, 0), "first": replies.get(False, 0)},
    }


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("list:harbor-users", "m.list = 'harbor-users'"),
        ("-list:harbor-users", "m.list <> 'harbor-users'"),
        ("from:ingrid or has:attachment", "m.from_email ~ 'ingrid' or m.attachments <> '[]'"),
        ('list:harbor-dev "lease"', "m.list = 'harbor-dev' and m.search @@ 'leas'"),
        ("list:harbor-dev lease queue sort:date",
         "m.list = 'harbor-dev' and m.search @@ 'leas & queue'"),
        ("from:nobody@nowhere.example", "false"),
    ],
)  # fmt: skip
def test_all_messages_that_meet_conditions_are_counted(
    search: Search, connection: psycopg.Connection, query: str, where: str
) -> None:
    found = search(query, facets=True, limit=1).facets
    expected = count(connection, where)
    assert found is not None
    assert not found.at_least
    for name in ("total", "lists", "months", "years"):
        assert getattr(found, name) == expected[name]
    assert [*found.months] == sorted(found.months)
    counts = [*found.authors.values()]
    assert counts == sorted(counts, reverse=True)
    assert {*found.authors.items()} <= {*expected["authors"].items()}
    kinds = {kind: found.kinds.get(kind, 0) for kind in ("reply", "first")}
    assert kinds == expected["kinds"]


@pytest.mark.parametrize("mode", MODES)
def test_of_a_ranked_query_what_was_found_is_counted(search: Search, mode: str) -> None:
    response = search("lease worker", mode=mode, facets=True, limit=100)
    assert response.facets is not None
    assert response.facets.at_least
    found = {one for hit in response.hits for one in (hit.message_id, *hit.copies)}
    assert response.facets.total >= len(found) > 0
    assert response.as_json()["facets"]["total"] == response.facets.total


def test_a_pasted_id_counts_one(search: Search) -> None:
    facets = search(ROOT, facets=True).facets
    assert facets is not None
    assert (facets.total, facets.at_least) == (1, False)


@pytest.mark.parametrize("query", ["lease worker", '"lease"', "list:harbor-dev lease"])
@pytest.mark.parametrize("mode", MODES)
def test_what_has_too_low_a_score_is_not_counted(search: Search, query: str, mode: str) -> None:
    scores = [hit.score for hit in search(query, mode=mode, limit=100, group="message").hits]
    cut = search(query, mode=mode, min_score=scores[2], facets=True).facets
    assert cut is not None
    assert cut.total == sum(score >= scores[2] for score in scores)
    none = search(query, mode=mode, min_score=1.01, facets=True).facets
    assert none is not None
    assert none.total == 0


@pytest.mark.parametrize(
    "query", ['"the lease"', '"lease"', 'list:harbor-users OR "lease"', "lease or from:ingrid"]
)
def test_as_many_are_counted_as_are_found(
    search: Search, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(facets_room, "max_depth", lambda _: 2)
    monkeypatch.setattr(filters, "MAX_WALKED", 1)
    response = search(query, facets=True, limit=100)
    facets = response.facets
    assert facets is not None
    assert facets.at_least
    assert facets.total >= len(response.hits) > 2
    assert {*facets.lists} >= {name for hit in response.hits for name in hit.lists}


def test_no_more_than_a_bound_is_counted(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets_room, "MAX_COUNTED", 5)
    facets = search("list:harbor-users", facets=True).facets
    assert facets is not None
    assert (facets.total, facets.at_least) == (6, True)


def test_facets_are_counted_if_they_are_asked_for(search: Search) -> None:
    assert search("lease").facets is None


def hit(message_id: str, **fields: Any) -> Hit:
    text = fields.pop("text", "one two three four five six seven eight nine ten")
    chunk = ChunkHit(f"{message_id}#0", 0, text, ((0, len(text)),), 1.0, None, ())
    shown = {"subject": "s", "from_email": "a@b", "sent_at": "", **fields}
    return Hit(
        message_id=message_id, lists=("dev",), month="2024-03", from_name="",
        score=1.0, thread_id=None, chunks=(chunk,), attachments=(),
        why=HitExplanation({}, (), None, 0.0),
        **shown,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("other", "folded"),
    [
        ({}, True),
        ({"subject": "[PATCH v2 1/3] s"}, True),
        ({"subject": "another"}, False),
        ({"from_email": "c@d"}, False),
        ({"text": "one two three four five six seven eight nine"}, True),
        ({"text": "one two three four five six seven eight other"}, False),
    ],
)
def test_what_one_sender_sent_twice_is_one_hit(other: dict[str, Any], folded: bool) -> None:
    folder = Folder()
    folder.add([hit("a", subject="[PATCH] s"), hit("x", from_email="e@f")])
    folder.add([hit("b", **other)])
    assert [h.message_id for h in folder.hits] == (["a", "x"] if folded else ["a", "x", "b"])
    assert folder.hits[0].copies == (("b",) if folded else ())


@pytest.mark.parametrize(
    ("days", "newer"),
    [
        ([3, 1, 2], None),
        ([1, 3, 2], "2"),
        ([1, 2, 3], "3"),
        ([2, 1], None),
        ([2, 2], None),  # sent at once, to two lists
        ([1], None),
    ],
)
def test_a_hit_names_the_newest_of_what_is_folded_into_it(
    days: list[int], newer: str | None
) -> None:
    folder = Folder()
    sent = {str(n): f"2024-03-0{day}T09:00:00Z" for n, day in enumerate(days, 1)}
    subjects = {one: f"[PATCH v{one}] s" for one in sent}
    folder.add([hit(one, sent_at=at, subject=subjects[one]) for one, at in sent.items()])
    [shown] = folder.hits
    assert shown.message_id == "1"
    wanted = newer and NewerCopy(newer, subjects[newer], sent[newer])
    assert shown.newer_copy == wanted


@pytest.mark.parametrize("block", [1, 7, 2 * FOLDED])
def test_only_the_best_are_folded_however_they_are_added(block: int) -> None:
    folder = Folder()
    many = [hit(str(n)) for n in range(FOLDED + 3)]
    for start in range(0, len(many), block):
        folder.add(many[start : start + block])
    assert [h.message_id for h in folder.hits] == [str(n) for n in (0, *range(FOLDED, FOLDED + 3))]
    assert len(folder.hits[0].copies) == FOLDED - 1


@pytest.mark.parametrize(
    ("threads", "named"),
    [
        # b is sent again as c, in a thread of its own whose answers were found too
        ({"a": "x", "b": "y", "c": "z"}, {"a": ("x1",), "b": ("y1", "z1", "z2")}),
        ({"a": "x", "b": "y", "c": "y"}, {"a": ("x1",), "b": ("y1",)}),
        # a is the first of that thread, and names them
        ({"a": "z", "b": "y", "c": "z"}, {"a": ("z1", "z2"), "b": ("y1",)}),
    ],
)
def test_what_was_found_of_a_thread_is_named_though_its_best_message_is_folded(
    threads: dict[str, str], named: dict[str, tuple[str, ...]]
) -> None:
    folder = Folder()
    found = (hit("a", from_email="e@f"), hit("b"), hit("c", subject="[PATCH v2] s"))
    folder.add(replace(one, thread_id=threads[one.message_id]) for one in found)
    rest = {"x": ["x1"], "y": ["y1"], "z": ["z1", "z2"]}
    assert {one.message_id: one.in_thread for one in name_rest(folder, rest, 10)} == named
    assert [one.message_id for one in name_rest(folder, rest, 1)] == ["a"]
