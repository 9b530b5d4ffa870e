"""Lists by date: how far back is looked for messages, and what is said of it."""

import psycopg
import pytest

from mail_assets.search import newest
from mail_assets.search.language.request import GROUPS
from mail_assets.search.look_up import LookedUp
from mail_assets.search.newest import NewestIds, find_newest
from mail_assets_tests.sample_corpus import Search, ids


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("depth", "is_whole"), [(8, False), (10_000, True)])
def test_list_by_date_reports_its_first_day_if_cut(
    search: Search, monkeypatch: pytest.MonkeyPatch, depth: int, is_whole: bool, group: str
) -> None:
    # of 22 messages 2 pass, by an exclusion that the index of words does not know
    query = "lease sort:date -subject:a"
    every = search(query, limit=100, group=group)
    monkeypatch.setattr(newest, "ENOUGH", 1)
    monkeypatch.setattr(newest, "max_depth", lambda _: depth)
    found = search(query, limit=3, group=group)
    day = found.looked_back_to
    assert (found.short, day is None) == (True, is_whole)
    assert [hit for hit in found.hits if not day or hit.sent_at[:10] >= day] == [
        hit for hit in every.hits if not day or hit.sent_at[:10] >= day
    ]
    monkeypatch.undo()
    rest = search(f"{query} before:{day}", limit=100, group=group) if day else found
    assert {*ids(found), *ids(rest)} == {*ids(every)}


@pytest.mark.parametrize("group", GROUPS)
def test_list_by_date_is_never_deeper_than_the_bound(
    search: Search, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    asked: list[int] = []

    def note(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> NewestIds | None:
        asked.append(most)
        return find_newest(connection, looked_up, most)

    monkeypatch.setattr(newest, "find_newest", note)
    monkeypatch.setattr(newest, "ENOUGH", 1)
    monkeypatch.setattr(newest, "max_depth", lambda _: 10)
    search("lease sort:date", limit=5, offset=3, group=group)
    search("lease sort:date -subject:a", limit=2, group=group)
    assert max(asked) == 10
