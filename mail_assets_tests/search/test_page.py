"""Pages follow one another, threads are one hit where hits are grouped, and scores can be cut."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.page import MAX_OF_THREAD, select_of_threads
from mail_assets.search.request import GROUPS, MODES, Group
from mail_assets.search.response import Hit
from mail_assets_tests.sample_corpus import QUERY, Search, ids


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


def test_a_minimum_score_cuts_the_end_and_says_short(search: Search) -> None:
    whole = search(QUERY, mode="semantic", limit=20).hits
    least = whole[5].score
    cut = search(QUERY, mode="semantic", limit=20, min_score=least)
    assert ids(cut) == [h.message_id for h in whole if h.score >= least]
    assert cut.short
