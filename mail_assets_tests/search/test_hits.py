"""What a hit shows: highlights that cut the body, reasons, folding, pages, threads."""

import json
import random
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.highlights import Highlighter, to_body_spans
from mail_assets.search.near_duplicates import fold_near_duplicates
from mail_assets.search.request import MODES, RequestError
from mail_assets.search.response import ChunkHit, Hit, HitExplanation
from mail_assets.search.searcher import Searcher
from mail_assets.search.terms import Term
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids


def hit(message_id: str, **fields: Any) -> Hit:
    text = fields.pop("text", "one two three four five six seven eight nine ten")
    chunk = ChunkHit(f"{message_id}#0", 0, text, ((0, len(text)),), 1.0, None, ())
    shown = {"subject": "s", "from_email": "a@b", **fields}
    return Hit(
        message_id=message_id, lists=("dev",), month="2024-03", from_name="", sent_at="",
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
    found = fold_near_duplicates(
        [hit("a", subject="[PATCH] s"), hit("x", from_email="e@f"), hit("b", **other)]
    )
    assert [h.message_id for h in found] == (["a", "x"] if folded else ["a", "x", "b"])
    assert found[0].copies == (("b",) if folded else ())


def test_highlights_are_words_by_their_stem_and_names_as_written() -> None:
    terms = [Term("leas", 5, 2.0), Term("harbor_lease", 1, 3.0), Term("gone", 0, 9.0)]
    marker = Highlighter({"leases": "leas", "lease": "leas"}, ["harbor_lease"], terms)
    text = "Leases: HARBOR_lease(1), release, lease2, lease."
    marks = marker.find(text)
    assert [text[s:e] for s, e in marks.spans] == ["Leases", "HARBOR_lease", "lease"]
    assert marks.weight == 5.0
    assert Highlighter({}, [], terms).find(text) == ([], 0.0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=5), st.data())
@settings(deadline=None)
def test_a_span_of_a_chunk_is_the_same_characters_in_the_body(
    pieces: list[tuple[int, int]], data: st.DataObject
) -> None:
    body = "".join(chr(0x4E00 + i) for i in range(100))
    spans, at = [], 0
    for gap, length in pieces:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    text = "".join(body[s:e] for s, e in spans)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    cut = to_body_spans([(start, end)], spans)
    assert "".join(body[s:e] for s, e in cut) == text[start:end]
    chunk = ChunkHit("k", 0, text, tuple(spans), 1.0, None, cut)
    assert "".join(piece for piece, _ in chunk.pieces()) == text
    assert "".join(piece for piece, marked in chunk.pieces() if marked) == text[start:end]


@pytest.mark.slow
def test_every_highlight_cuts_text_that_stands_in_the_body(
    search: Search, connection: psycopg.Connection
) -> None:
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
        query = " ".join(chance.sample(words, 3))
        for found in search(query, mode=chance.choice(MODES), limit=50).hits:
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


def test_a_hit_says_why_it_is_one(search: Search) -> None:
    response = search(QUERY, explain=True)
    by_both = [h for h in response.hits if {*h.why.ranks} == {"semantic", "fulltext"}]
    assert by_both
    assert all(h.why.words and h.why.distance is not None for h in by_both)
    assert response.explain is not None
    assert response.explain["mix"]["semantic"] + response.explain["mix"]["fulltext"] == 1
    assert [t["lexeme"] for t in response.explain["terms"]]
    assert search(QUERY).explain is None


@pytest.mark.parametrize("query", ["list:harbor-dev", f"<{ROOT}>", QUERY])
def test_an_explained_response_is_json_whatever_was_asked(search: Search, query: str) -> None:
    response = search(query, explain=True)
    assert json.loads(json.dumps(response.as_json()))["explain"] == response.explain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", ["message", "thread"])
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


def test_a_minimum_score_cuts_the_end_and_says_short(search: Search) -> None:
    whole = search(QUERY, mode="semantic", limit=20).hits
    least = whole[5].score
    cut = search(QUERY, mode="semantic", limit=20, min_score=least)
    assert cut.hits == tuple(h for h in whole if h.score >= least)
    assert cut.short


def test_what_is_like_a_message_is_not_itself(searcher: Searcher) -> None:
    response = searcher.similar(f"<{ROOT}>", limit=5)
    assert len(response.hits) == 5
    assert ROOT not in ids(response)
    scores = [h.score for h in response.hits]
    assert scores == sorted(scores, reverse=True)
    with pytest.raises(RequestError, match="no message 'nobody@nowhere' with text"):
        searcher.similar("nobody@nowhere")
