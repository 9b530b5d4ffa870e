"""Pages follow one another, threads are one hit where hits are grouped, and scores can be cut."""

import pytest

from mail_assets.search.request import MODES
from mail_assets_tests.sample_corpus import QUERY, Search, ids


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
