"""A hit shows highlights that cut the body, and says why it is one."""

import random

import psycopg
import pytest

from mail_assets.search.language.request import MODES
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search


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


def test_a_hit_says_why_it_is_one(search: Search) -> None:
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
def test_a_hit_says_what_found_it(search: Search, mode: str, query: str, found_by: str) -> None:
    hits = search(query, mode=mode).hits
    assert {hit.why.found_by for hit in hits} == {found_by}
    assert {bool(hit.why.ranks) for hit in hits} == {found_by == "legs"}


def test_messages_of_a_thread_that_no_leg_found_say_so(search: Search) -> None:
    hits = search(QUERY, limit=100, group="message").hits
    assert {hit.why.found_by for hit in hits} == {"legs", "thread"}
    assert all(bool(hit.why.ranks) == (hit.why.found_by == "legs") for hit in hits)


def test_words_of_the_subject_are_reasons_too_and_each_is_named_once(search: Search) -> None:
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
def test_how_many_messages_have_a_word_is_said_where_it_is_known(search: Search, mode: str) -> None:
    explained = search("lease quuxblargh", mode=mode, explain=True).explain
    assert explained is not None
    english = {one["lexeme"]: one["messages"] for one in explained["terms"]}
    assert english["leas"] > 10
    assert english["quuxblargh"] is None
