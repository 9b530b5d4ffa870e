"""Lists by date, from either end: how far is looked for messages, and what is said of it."""

import psycopg
import pytest

from mail_assets.search import filters, newest
from mail_assets.search.language.request import GROUPS
from mail_assets.search.look_up import LookedUp
from mail_assets.search.newest import NewestIds, find_newest
from mail_assets_tests.sample_corpus import Search, ids

#: The orders by date, and the field with which a list goes on.
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
    # of 22 messages 2 pass, by an exclusion that the index of words does not know
    query = f"lease sort:{sort} -subject:a"
    every = search(query, limit=100, group=group)
    monkeypatch.setattr(newest, "ENOUGH", 1)
    monkeypatch.setattr(newest, "MAX_DEPTH", depth)
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
    assert group == "thread" or together == {*ids(every)}  # a thread may be on both sides


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

    monkeypatch.setattr(newest, "find_newest", note)
    monkeypatch.setattr(newest, "ENOUGH", 1)
    monkeypatch.setattr(newest, "MAX_DEPTH", 10)
    search(f"lease sort:{sort}", limit=5, offset=3, group=group)
    search(f"lease sort:{sort} -subject:a", limit=2, group=group)
    assert max(asked) == 10
