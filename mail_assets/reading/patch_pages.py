"""Reads commits and patches for pages: commits by prefix, newest applied, newest open patches.

Each page reads a limited number of rows. So a page may have few entries although there is a next
page.
"""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from mail_assets.mail.message.text_addresses import CONTEXT
from mail_assets.mail.patches.interdiff import PatchComparison, Version, compare_patches
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_value, statement
from mail_assets.reading.decisions import (
    Decision,
    add_discussion,
    explain_stored,
    follow_pick,
)
from mail_assets.reading.patches import NoPatchError, read_patches
from mail_assets.reading.series import OPEN, Change, SeriesPatchView, SeriesView, read_many
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.commits import CommitKey, Discussed, StoredCommit, read_commits

#: Most commits that are listed for an ambiguous id.
MOST_COMMITS = 20
#: Most rows that are read for a page.
LOOKED_AT = 1_000
#: Most changed lines, of both postings together, that are compared on a page: takes a second.
MAX_COMPARED = 20_000

_LATEST = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)


class Before(NamedTuple):
    """A position in a list by date, newest first: the following entries are older."""

    at: dt.datetime = _LATEST
    id: str = ""


class Details(NamedTuple):
    """Details of a version that the page of a series shows in addition to its state.

    `around` is the sentence that gives the reason of the state, with the text before and after it;
    `start` and `end` are its position in `around`.
    """

    changelog: Sequence[str]
    added: int
    removed: int
    files: int
    around: str | None
    start: int | None
    end: int | None


def find_commits(connection: psycopg.Connection, prefix: str) -> list[CommitKey]:
    """Return at most MOST_COMMITS + 1 commits whose ids begin with `prefix`.

    If several repositories have a commit, the first counts.
    """
    values = {"prefix": prefix, "most": MOST_COMMITS + 1}
    rows = connection.execute(statement("patch_pages", "by_prefix"), values).fetchall()
    found: dict[str, CommitKey] = {}
    for name, sha in rows:
        found.setdefault(sha, CommitKey(name, sha))
    return [*found.values()]


def was_commit_shown(connection: psycopg.Connection, prefix: str) -> bool:
    """Return whether a commit with this prefix belongs to a list that is or was published."""
    return bool(read_value(connection, statement("patch_pages", "is_closed"), {"prefix": prefix}))


def has_commits(connection: psycopg.Connection, list_name: str) -> bool:
    """Return whether a list discusses a repository whose commits are stored."""
    query = statement("patch_pages", "has_commits")
    return bool(read_value(connection, query, {"list": list_name}))


def read_addresses(
    connection: psycopg.Connection, of: ListMonth
) -> list[tuple[str, str, dt.datetime | None]]:
    """Return ("commit" or "series", id, date) of the series and linked commits of a month."""
    return connection.execute(statement("patch_pages", "addresses"), of.columns).fetchall()


def read_commit_page(
    connection: psycopg.Connection, key: CommitKey
) -> tuple[StoredCommit, Decision] | None:
    """Return a commit and its decision with all mail about it, None if it is not stored."""
    row = read_commits(connection, [key]).get(key)
    if row is None:
        return None
    list_of = read_value(connection, statement("patch_pages", "list_of"), key._asdict())
    about = Discussed((str(list_of),))
    decision = follow_pick(
        connection, explain_stored(connection, [key], {key.repository: about})[key]
    )
    return row, add_discussion(connection, decision, about.lists)


def read_applied(
    connection: psycopg.Connection, list_name: str, before: Before, most: int
) -> tuple[list[Decision], Before | None]:
    """Return the commits of a list with certain mail that are older than `before`, newest first.

    The second value is the position where the next page begins, None after the last page.
    """
    values = {
        "list": list_name,
        "committed_at": before.at,
        "sha": before.id,
        "most": LOOKED_AT,
    }
    rows = connection.execute(statement("patch_pages", "applied"), values).fetchall()
    found: list[CommitKey] = []
    following = None
    for repository, sha, committed_at, has_mail in rows:
        if has_mail:
            found.append(CommitKey(repository, sha))
        if len(found) == most:
            following = Before(committed_at, sha)
            break
    else:
        if len(rows) == LOOKED_AT:
            following = Before(rows[-1][2], rows[-1][1])
    about = dict.fromkeys((key.repository for key in found), Discussed((list_name,)))
    made = explain_stored(connection, found, about)
    return [made[key] for key in found if not made[key].abstained], following


def read_open_patches(
    connection: psycopg.Connection, list_name: str, before: Before, most: int
) -> tuple[list[tuple[SeriesView, Change]], Before | None]:
    """Return the open patches of a list that are older than `before`, each with its series.

    Cover letters are left out. The date of a patch is the date of its newest version. The second
    value is as in `read_applied`.
    """
    values = {
        "list": list_name,
        "sent_at": before.at,
        "message_id": before.id,
        "most": LOOKED_AT,
    }
    rows = connection.execute(statement("patch_pages", "open"), values).fetchall()
    open_rows = [(id, sent_at) for id, sent_at, is_open in rows if is_open][:most]
    following = None
    if len(open_rows) == most:
        following = Before(open_rows[-1][1], open_rows[-1][0])
    elif len(rows) == LOOKED_AT:
        following = Before(rows[-1][1], rows[-1][0])
    series = read_many(connection, [id for id, _ in open_rows])
    changes = [
        (series[id], change)
        for id, _ in open_rows
        if id in series
        for change in series[id].change_of(id)
        for newest in [change.deciding]
        if newest.message_id == id and newest.kind == "patch" and newest.state in OPEN
    ]
    return changes, following


def read_details(connection: psycopg.Connection, message_id: str) -> dict[tuple[str, int], Details]:
    """Return (Message-ID, place) -> details for the versions in a mail's series."""
    values = {"message_id": message_id, "context": CONTEXT}
    rows = connection.execute(statement("patch_pages", "details"), values).fetchall()
    return {(id, place): Details(*rest) for id, place, *rest in rows}


def compare_postings(
    connection: psycopg.Connection,
    store: ObjectStore,
    series: SeriesView,
    old: int,
    new: int,
) -> list[PatchComparison]:
    """Compare two postings of a series, patch by patch, in the order of the newer one.

    Raises:
        NoPatchError: one of them has no patch, or they are too long for a page.
        StoreError: a patch is attached, and the archive is gone.
    """
    size = sum(
        one.added + one.removed
        for key, one in read_details(connection, series.postings[0][0].message_id).items()
        if key in {(x.message_id, x.place) for at in (old, new) for x in series.postings[at]}
    )
    if size > MAX_COMPARED:
        raise NoPatchError(
            f"these versions have {size:,} changed lines, too many to be compared on a page; "
            f"mail-assets interdiff compares them"
        )
    before, after = (_versions(connection, store, series.postings[at]) for at in (old, new))
    if not before or not after:
        raise NoPatchError("one of these versions has no patch")
    numbers = [*after, *(number for number in before if number not in after)]
    return [compare_patches(before.get(number), after.get(number)) for number in numbers]


def _versions(
    connection: psycopg.Connection, store: ObjectStore, posting: Sequence[SeriesPatchView]
) -> dict[int, Version]:
    """Return change number -> patch of a posting; the last patch if a change has several."""
    ids = dict.fromkeys(one.message_id for one in posting if one.kind == "patch")
    read = {id: read_patches(connection, store, id) for id in ids}
    return {
        one.change: read[one.message_id][one.place]
        for one in posting
        if one.kind == "patch" and one.place in read[one.message_id]
    }
