"""Pages of any size and order have all rows, up to the last message."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from mail_assets.search import by_date, filters, page, retrieval, searcher
from mail_assets.search.by_date import NewestIds, find_newest
from mail_assets.search.language.request import GROUPS, SORTS, After, Request
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Depths
from mail_assets.search.response import Response
from mail_assets_tests.sample_corpus import QUERY, Search, ids

#: Queries by date: words, lists, and conditions with and without an index.
BY_DATE = ["lease", "list:harbor-dev", "-worker", "from:tom", "-subject:zzz", "is:reply", "leas*"]


def walk(search: Search, query: str, **options: Any) -> Iterator[Response]:
    after: After | None = None
    while True:
        found = search(query, after_row=after, **options)
        yield found
        assert (found.next_row is None) == (found.end is not None)
        if found.next_row is None:
            return
        assert found.next_row != after
        after = found.next_row


def rows_of(pages: Iterator[Response], group: str) -> list[tuple[str, ...]]:
    if group != "conversation":
        return [(hit.message_id,) for found in pages for hit in found.hits]
    return [
        (one.thread_id or "", *one.best, str(one.more))
        for found in pages
        for one in found.conversations
    ]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits for lists by date: four rows are read whole, then blocks of three messages."""
    for module in (page, retrieval, searcher):
        monkeypatch.setattr(module, "FOLDED", 4)
    for module in (by_date, retrieval):
        monkeypatch.setattr(module, "PAGE_DEPTH", 3)
    monkeypatch.setattr(retrieval, "SPARE_CANDIDATES", 0)


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("sort", ["date", "oldest"])
@pytest.mark.parametrize("query", BY_DATE)
def test_pages_by_date_have_the_same_rows_there_and_back(
    search: Search, query: str, sort: str, group: str
) -> None:
    asked = {"sort": sort, "group": group}
    whole = rows_of(walk(search, query, limit=100, **asked), group)
    assert whole
    assert len({*whole}) == len(whole)
    for limit in (1, 7):
        assert rows_of(walk(search, query, limit=limit, **asked), group) == whole
    there = [*walk(search, query, limit=3, **asked)]
    assert rows_of(iter(there), group) == whole
    back = [there[-1]]
    while row := back[0].previous_row:
        counted = {"offset": row.rows} if row.rows < 4 else {"after_row": row}
        back.insert(0, search(query, limit=3, **counted, **asked))
    assert rows_of(iter(back), group) == whole


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("sort", ["date", "oldest"])
def test_pages_by_date_have_every_message(search: Search, sort: str) -> None:
    pages = walk(search, "list:harbor-dev", sort=sort, limit=3, facets=True)
    found = [*pages]
    totals = {(one.facets.total, one.facets.at_least) for one in found if one.facets}
    [(total, at_least)] = totals
    named = [one for p in found for c in p.conversations for one in (*c.best, *c.others)]
    copies = [one for p in found for hit in p.hits for one in hit.copies]
    assert len({*named, *copies}) == total
    assert not at_least
    assert found[-1].end == "all"


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("query", ["-subject:zzz sort:oldest", "-subject:zzz", "-subject:a lease"])
def test_pages_go_on_where_no_index_knows_what_is_asked(
    search: Search, monkeypatch: pytest.MonkeyPatch, query: str, group: str
) -> None:
    asked = {"group": group, "limit": 5, "sort": "oldest" if "oldest" in query else "date"}
    whole = {row[0] for row in rows_of(walk(search, query, **asked), group)}
    monkeypatch.setattr(filters, "MAX_WALKED", 7)
    pages = [*walk(search, query, **asked)]
    assert {row[0] for row in rows_of(iter(pages), group)} == whole
    assert pages[-1].end == "all"
    assert pages[-1].looked_back_to is None


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("mode", ["hybrid", "semantic", "fulltext"])
def test_ranked_pages_of_any_size_have_the_same_rows(
    search: Search, monkeypatch: pytest.MonkeyPatch, mode: str, group: str
) -> None:
    # the first depth is too small, and near-duplicates are folded only on the first pages
    monkeypatch.setattr(retrieval, "HYBRID_DEPTHS", Depths(6, 4))
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 5)
    monkeypatch.setattr(retrieval, "FULLTEXT_DEPTH", 5)
    monkeypatch.setattr(retrieval, "PAGE_DEPTH", 5)
    for module in (page, retrieval, searcher):
        monkeypatch.setattr(module, "FOLDED", 6)
    asked = {"mode": mode, "group": group, "facets": True}
    pages = [*walk(search, QUERY, limit=100, **asked)]
    whole = rows_of(iter(pages), group)
    assert len(whole) > 6
    for limit in (2, 5):
        found = [*walk(search, QUERY, limit=limit, **asked)]
        ids = [row[:2] for row in rows_of(iter(found), group)]
        assert ids == [row[:2] for row in whole]
        assert len({one.facets.total for one in found if one.facets}) == 1
        assert found[-1].end == pages[-1].end


def test_ranking_says_that_it_ends_by_depth(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "FULLTEXT_DEPTH", 5)
    monkeypatch.setattr(retrieval, "MAX_DEPTH", 5)
    assert [*walk(search, "lease", mode="fulltext", limit=3)][-1].end == "depth"


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("group", GROUPS)
def test_page_goes_on_after_its_row_where_new_mail_came(
    search: Search, sort: str, group: str
) -> None:
    """A row before the page has the same effect as a message that arrives in between."""
    asked = {"sort": sort, "group": group, "mode": "fulltext"}
    first = search("lease", limit=3, **asked)
    after = first.next_row
    assert after
    wanted = search("lease", limit=3, after_row=after, **asked).hits
    earlier = replace(after, rows=after.rows - 1)
    assert search("lease", limit=3, after_row=earlier, **asked).hits == wanted


def test_deleted_row_still_counts_for_the_next_page(search: Search) -> None:
    gone = After(3, "gone@example.org")
    assert search("lease", limit=3, after_row=gone).hits == search("lease", limit=3, offset=3).hits


def test_place_beyond_the_last_message_has_no_row(search: Search) -> None:
    place = After(400, "", dt.datetime(1990, 1, 1, tzinfo=dt.UTC))
    found = search("list:harbor-dev", sort="date", after_row=place)
    assert (found.hits, found.next_row, found.end) == ((), None, "all")
    assert Request("x", after_row=place).rows_before == 400


#: The orders by date, and the field that continues a list.
ENDS = [("date", "before"), ("oldest", "after")]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("sort", "beyond"), ENDS)
@pytest.mark.parametrize(("depth", "is_whole"), [(8, False), (10_000, True)])
def test_list_by_date_reports_its_last_day_if_cut(
    search: Search,
    monkeypatch: pytest.MonkeyPatch,
    depth: int,
    is_whole: bool,
    sort: str,
    beyond: str,
    group: str,
) -> None:
    # 2 of 22 messages pass, by an exclusion that the word index does not support
    query = f"lease sort:{sort} -subject:a"
    every = search(query, limit=100, group=group)
    monkeypatch.setattr(by_date, "ENOUGH", 1)
    monkeypatch.setattr(by_date, "MAX_DEPTH", depth)
    found = search(query, limit=3, group=group)
    day = found.looked_back_to
    assert (found.short, day is None) == (True, is_whole)
    seen = {one.message_id for one in every.hits if not day or _is_seen(one.sent_at, day, sort)}
    assert seen <= {*ids(found)}
    assert any(f"add {beyond}:{day}." in note for note in found.notes) == (day is not None)
    monkeypatch.undo()
    rest = search(f"{query} {beyond}:{day}", limit=100, group=group) if day else found
    together = {*ids(found), *ids(rest)}
    assert together >= {*ids(every)}
    assert group == "thread" or together == {*ids(every)}  # a thread may be on both pages


def _is_seen(sent_at: str, day: str, sort: str) -> bool:
    return sent_at[:10] < day if sort == "oldest" else sent_at[:10] >= day


@pytest.mark.parametrize(("sort", "beyond"), ENDS)
def test_walk_reports_its_last_day_if_cut(
    search: Search, monkeypatch: pytest.MonkeyPatch, sort: str, beyond: str
) -> None:
    query = f"-subject:zzz -subject:lease sort:{sort}"
    every = search(query, limit=100, group="message")
    monkeypatch.setattr(filters, "MAX_WALKED", 30)
    found = search(query, limit=100, group="message")
    assert found.looked_back_to
    assert ids(found) == ids(every)[: len(found.hits)]
    monkeypatch.undo()
    rest = search(f"{query} {beyond}:{found.looked_back_to}", limit=100, group="message")
    assert {*ids(found), *ids(rest)} == {*ids(every)}


@pytest.mark.parametrize(
    "query", ["lease", "list:harbor-dev", "-worker", '"of the lease"', "lease -from:tom", "leas*"]
)
def test_oldest_first_is_newest_first_reversed(search: Search, query: str) -> None:
    newest_first = search(f"{query} sort:newest", limit=100, group="message").hits
    oldest_first = search(f"{query} sort:oldest", limit=100, group="message").hits
    assert len(oldest_first) > 2
    days = [hit.sent_at for hit in oldest_first]
    assert days == sorted(days) == [hit.sent_at for hit in reversed(newest_first)]
    assert {hit.message_id for hit in newest_first} == {hit.message_id for hit in oldest_first}


@pytest.mark.parametrize("query", ["lease", "list:harbor-dev", "-from:tom"])
def test_pages_of_the_oldest_follow_one_another(search: Search, query: str) -> None:
    whole = ids(search(query, sort="oldest", limit=12))
    pages = [ids(search(query, sort="oldest", limit=4, offset=at)) for at in (0, 4, 8)]
    assert [one for page in pages for one in page] == whole


@pytest.mark.parametrize("sort", ["date", "oldest"])
@pytest.mark.parametrize("group", GROUPS)
def test_list_by_date_is_never_deeper_than_the_bound(
    search: Search, monkeypatch: pytest.MonkeyPatch, group: str, sort: str
) -> None:
    asked: list[int] = []

    def note(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> NewestIds | None:
        asked.append(most)
        return find_newest(connection, looked_up, most)

    monkeypatch.setattr(by_date, "find_newest", note)
    monkeypatch.setattr(by_date, "ENOUGH", 1)
    monkeypatch.setattr(by_date, "MAX_DEPTH", 10)
    search(f"lease sort:{sort}", limit=5, offset=3, group=group)
    search(f"lease sort:{sort} -subject:a", limit=2, group=group)
    assert max(asked) == 10
