"""Pages follow one another, and near-duplicates are one hit."""

import random
from typing import Any

import psycopg
import pytest

from mail_assets.search import fulltext, page, retrieval
from mail_assets.search.language.request import GROUPS, MODES, Group
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Depths
from mail_assets.search.page import (
    MIN_OVERLAP,
    Folder,
)
from mail_assets.search.response import ChunkHit, Hit, HitExplanation, NewerCopy, Response
from mail_assets.search.retrieval import FOLDED, LegRankings, Retriever
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids


def turn_pages(search: Search, query: str, size: int, group: str) -> list[Response]:
    """Ask for pages up to the last one."""
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
    # with 0, all messages of one author with one subject are one hit
    monkeypatch.setattr(page, "MIN_OVERLAP", overlap)
    whole = search(query, limit=100, group=group, facets=True)
    assert whole.facets is not None
    pages = turn_pages(search, query, size, group)
    assert [i for page in pages for i in ids(page)] == ids(whole)
    named = [i for hit in whole.hits for i in (hit.message_id, *hit.copies)]
    named += [i for one in whole.conversations for i in one.others]
    assert len({*named}) == len(named) == whole.facets.total
    if group == Group.conversation and overlap:
        rows = connection.execute(THREADS, {"ids": named}).fetchall()
        threads = [one.thread_id for page in pages for one in page.conversations]
        assert sorted(filter(None, threads)) == sorted(thread for (thread,) in rows)


THREADS = "select distinct thread_id from threads where message_id = any(%(ids)s)"


@pytest.mark.parametrize("size", [1, 7])
def test_deep_pages_by_meaning_follow_one_another(
    search: Search, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 4)
    # an index whose matches change with the depth, as in approximate search
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
    for one in (hit("a", subject="[PATCH] s"), hit("x", from_email="e@f"), hit("b", **other)):
        folder.add(one)
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
    for one, at in sent.items():
        folder.add(hit(one, sent_at=at, subject=subjects[one]))
    [shown] = folder.hits
    assert shown.message_id == "1"
    wanted = newer and NewerCopy(newer, subjects[newer], sent[newer])
    assert shown.newer_copy == wanted


def test_only_the_best_hits_are_folded() -> None:
    folder = Folder()
    for n in range(FOLDED + 3):
        folder.add(hit(str(n)))
    assert [h.message_id for h in folder.hits] == [str(n) for n in (0, *range(FOLDED, FOLDED + 3))]
    assert len(folder.hits[0].copies) == FOLDED - 1


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
