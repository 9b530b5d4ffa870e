"""Pages follow one another, near-duplicates are one hit, and a thread has few."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search import fulltext, page, retrieval
from mail_assets.search.language.request import GROUPS, MODES, Group
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Candidate, Depths, MessageCopy
from mail_assets.search.page import (
    FOLDED,
    MAX_OF_THREAD,
    MIN_OVERLAP,
    Folder,
    name_rest,
    select_of_threads,
)
from mail_assets.search.response import ChunkHit, Hit, HitExplanation, NewerCopy, Response
from mail_assets.search.retrieval import LegRankings, Retriever
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", GROUPS)
def test_pages_follow_one_another(search: Search, mode: str, group: str) -> None:
    whole = ids(search(QUERY, mode=mode, limit=12, group=group))
    pages = [ids(search(QUERY, mode=mode, limit=4, offset=at, group=group)) for at in (0, 4, 8)]
    assert whole
    assert [i for page in pages for i in page] == whole


@pytest.mark.parametrize("mode", MODES)
def test_grouped_thread_is_one_hit_that_names_the_others(search: Search, mode: str) -> None:
    hits = search(QUERY, mode=mode, limit=20, group="thread").hits
    threads = [h.thread_id for h in hits]
    assert len({*threads}) == len(threads)
    assert any(h.in_thread for h in hits)
    found = {*ids(search(QUERY, mode=mode, limit=100))}
    assert {i for h in hits[:3] for i in (h.message_id, *h.in_thread)} & found


@pytest.mark.parametrize("mode", MODES)
def test_thread_has_three_hits_and_the_first_names_the_rest(search: Search, mode: str) -> None:
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


def test_single_thread_and_list_by_date_are_not_cut(search: Search) -> None:
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
def test_pages_of_any_size_reach_all_of_a_list_by_date(
    search: Search,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    size: int,
    group: str,
    overlap: float,
) -> None:
    # at 0 all messages of one author with one subject are one hit
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
def test_deep_pages_by_meaning_follow_one_another(
    search: Search, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 4)
    # an index that finds others when it is asked deeper, as approximate ones do
    monkeypatch.setattr(retrieval, "DEEPER", 3)
    rank_legs = Retriever.rank_legs

    def rank_others(legs: Retriever, looked_up: LookedUp, depths: Depths) -> LegRankings:
        found = rank_legs(legs, looked_up, depths)
        return found._replace(semantic=found.semantic[depths.vectors // 10 :])

    monkeypatch.setattr(Retriever, "rank_legs", rank_others)
    whole = ids(search(QUERY, mode="semantic", limit=42, group="message"))
    pages = [
        ids(search(QUERY, mode="semantic", limit=size, offset=at, group="message"))
        for at in range(0, 42, size)
    ]
    assert [i for page in pages for i in page] == whole
    assert len({*whole}) == len(whole) > 20


@pytest.mark.parametrize("size", [2, 3])
def test_pages_by_words_reach_all_that_pass_a_filter(
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
def test_best_of_each_thread_are_hits_and_none_is_lost(
    threads: list[str], most: int | None
) -> None:
    ranked = [Candidate(str(n), COPY, thread, 1.0) for n, thread in enumerate(threads)]
    selected, rest = select_of_threads(ranked, most)
    found = [one.message_id for one in selected] + [i for left in rest.values() for i in left]
    assert sorted(found) == sorted(one.message_id for one in ranked)
    assert selected == [one for one in ranked if one in selected]
    if most and len({*threads}) > 1:
        assert max(Counter(one.thread_key for one in selected).values()) <= most


def test_deeper_candidates_do_not_change_the_thread_limit() -> None:
    ranked = [Candidate(str(n), COPY, "a" if n < 5 else "b", 1.0) for n in range(7)]
    assert select_of_threads(ranked[:5], 3, 5) == (ranked[:5], {})
    assert select_of_threads(ranked, 3, 5) == (ranked, {})
    assert select_of_threads(ranked, 3)[0] == [*ranked[:3], *ranked[5:]]


@pytest.mark.parametrize(
    ("mode", "query"), [("fulltext", "upgrade"), ("semantic", "completed jobs leave the hot table")]
)
def test_pages_follow_if_the_first_hits_are_of_one_thread(
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


def test_message_found_by_its_thread_gives_way_to_others() -> None:
    own = {"first": 0.2, "second": 0.05, "third": 0.04, "fourth": 0.0, "other": 0.1}
    ranked = [
        Candidate(name, COPY, "b" if name == "other" else "a", 0.5 + claim, thread_score=0.5)
        for name, claim in own.items()
    ]
    selected, rest = select_of_threads(ranked, 3)
    assert [one.message_id for one in selected] == ["first", "second", "other"]
    assert rest == {"a": ["third", "fourth"]}


@pytest.mark.parametrize("query", ["from:ingrid", "lease sort:date", "list:harbor-dev"])
def test_list_by_date_is_not_cut_by_a_score(search: Search, query: str) -> None:
    whole = search(query, limit=20, facets=True)
    found = search(query, limit=20, facets=True, min_score=0.2)
    assert ids(found) == ids(whole) != []
    assert found.facets == whole.facets
    assert ids(search(f"{query} score:0.2", limit=20)) == ids(whole)


def test_minimum_score_cuts_the_end_of_a_page(search: Search) -> None:
    whole = search(QUERY, mode="semantic", limit=20).hits
    least = whole[5].score
    cut = search(QUERY, mode="semantic", limit=20, min_score=least)
    assert ids(cut) == [h.message_id for h in whole if h.score >= least]
    assert cut.short


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
def test_near_duplicates_of_a_sender_are_one_hit(other: dict[str, Any], folded: bool) -> None:
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
def test_hit_names_its_newest_duplicate(days: list[int], newer: str | None) -> None:
    folder = Folder()
    sent = {str(n): f"2024-03-0{day}T09:00:00Z" for n, day in enumerate(days, 1)}
    subjects = {one: f"[PATCH v{one}] s" for one in sent}
    folder.add([hit(one, sent_at=at, subject=subjects[one]) for one, at in sent.items()])
    [shown] = folder.hits
    assert shown.message_id == "1"
    wanted = newer and NewerCopy(newer, subjects[newer], sent[newer])
    assert shown.newer_copy == wanted


@pytest.mark.parametrize("block", [1, 7, 2 * FOLDED])
def test_only_the_best_hits_are_folded(block: int) -> None:
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
def test_thread_is_named_by_the_hit_it_is_folded_into(
    threads: dict[str, str], named: dict[str, tuple[str, ...]]
) -> None:
    folder = Folder()
    found = (hit("a", from_email="e@f"), hit("b"), hit("c", subject="[PATCH v2] s"))
    folder.add(replace(one, thread_id=threads[one.message_id]) for one in found)
    rest = {"x": ["x1"], "y": ["y1"], "z": ["z1", "z2"]}
    assert {one.message_id: one.in_thread for one in name_rest(folder, rest, 10)} == named
    assert [one.message_id for one in name_rest(folder, rest, 1)] == ["a"]


@pytest.mark.slow
def test_highlights_are_text_of_the_body(search: Search, connection: psycopg.Connection) -> None:
    bodies = connection.execute(
        "select list, month, message_id, body_text from messages"
    ).fetchall()
    texts: dict[str, set[str]] = {}
    for *_, message_id, body in bodies:
        texts.setdefault(message_id, set()).add(body)
    words = sorted(
        {w for *_, body in bodies for w in body.split() if '"' not in w and ":" not in w}
    )
    chance = random.Random(6)
    checked = highlighted = 0
    while checked < 1_000:
        query, mode = " ".join(chance.sample(words, 3)), chance.choice(MODES)
        for found in search(query, mode=mode, limit=50, group="message").hits:
            checked += 1
            for chunk in found.chunks:
                cuts = [(s, e) for s, e in (*chunk.spans, *chunk.highlights)]
                assert any(
                    chunk.text == "".join(body[s:e] for s, e in chunk.spans)
                    and all(0 <= s < e <= len(body) for s, e in cuts)
                    for body in texts[found.message_id]
                )
                marked = [piece for piece, is_marked in chunk.pieces() if is_marked]
                highlighted += len(marked)
                assert all(piece in chunk.text for piece in marked)
    assert highlighted > checked


def test_hit_explains_why_it_is_found(search: Search) -> None:
    response = search(QUERY, explain=True)
    by_both = [h for h in response.hits if {*h.why.ranks} == {"semantic", "fulltext"}]
    assert by_both
    assert all(h.why.words and h.why.distance is not None for h in by_both)
    assert response.explain is not None
    assert response.explain["mix"]["semantic"] + response.explain["mix"]["fulltext"] == 1
    assert [t["lexeme"] for t in response.explain["terms"]]
    assert search(QUERY).explain is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "found_by"),
    [
        (f"<{ROOT}>", "id"),
        ("lease renew sort:date", "date"),
        ("list:harbor-dev", "date"),
        ('"ran out"', "legs"),
    ],
)
def test_hit_names_what_found_it(search: Search, mode: str, query: str, found_by: str) -> None:
    hits = search(query, mode=mode).hits
    assert {hit.why.found_by for hit in hits} == {found_by}
    assert {bool(hit.why.ranks) for hit in hits} == {found_by == "legs"}


def test_thread_messages_without_a_leg_are_marked(search: Search) -> None:
    hits = search(QUERY, limit=100, group="message").hits
    assert {hit.why.found_by for hit in hits} == {"legs", "thread"}
    assert all(bool(hit.why.ranks) == (hit.why.found_by == "legs") for hit in hits)


def test_words_of_the_subject_are_reasons_named_once(search: Search) -> None:
    for hit in search("lease renewal Upgrade", mode="fulltext", limit=20).hits:
        titled = [hit.subject[start:end] for start, end in hit.subject_highlights]
        named = [word.lower() for word in hit.why.words]
        assert named
        assert len({*named}) == len(named)
        assert {word.lower() for word in titled} <= {*named}
        assert hit.subject_highlights or hit.chunks[0].highlights
    [hit] = search("subject:Nombres nombres", mode="fulltext").hits
    assert (hit.subject_highlights, hit.why.words) == (((0, 7),), ("Nombres",))


@pytest.mark.parametrize("mode", ["hybrid", "fulltext"])
def test_explanation_counts_messages_of_known_words(search: Search, mode: str) -> None:
    explained = search("lease quuxblargh", mode=mode, explain=True).explain
    assert explained is not None
    english = {one["lexeme"]: one["messages"] for one in explained["terms"]}
    assert english["leas"] > 10
    assert english["quuxblargh"] is None
