"""Series as people read them: versions, states with their reasons, silence, closed lists."""

import datetime as dt

import click
import pytest

from mail_assets.cli.series import format_series
from mail_assets.reading.patches import NoPatchError, find_previous
from mail_assets.reading.series import SILENT_DAYS, describe_mails, read_open, read_series
from mail_assets.tables.lists import show_lists
from mail_assets_tests.steps.test_group_series import (
    BOB,
    FIRST,
    LINES,
    SECOND,
    TITLE,
    load,
    patch,
    post,
)
from mail_assets_tests.world import APRIL, HARBOR, PIER, World

MARCH_20 = dt.datetime(2024, 3, 20, tzinfo=dt.UTC)
COMMIT = "3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345"


@pytest.fixture
def filled(world: World) -> World:
    """A world with two versions, the second applied, and an open patch."""
    thanks = f"Thanks, pushed as {COMMIT[:12]}.\n"
    load(
        world,
        FIRST,
        SECOND,
        post("t", f"Re: [PATCH v2] {TITLE}", thanks, BOB, 12, "v2"),
        patch("o", "[PATCH] pier: Stay open for longer", LINES[30:40], day=14),
    )
    world.series()
    return world


def test_series_has_versions_with_evidence_and_reason(filled: World) -> None:
    with filled.connect() as connection:
        show_lists(connection, [HARBOR])
        series = read_series(connection, "v1@example.org", MARCH_20)
    assert series is not None
    assert [change.deciding.state for change in series.changes] == ["applied"]
    newest = series.changes[0].deciding
    assert (newest.message_id, newest.evidence) == ("v2@example.org", ["title", "lines"])
    assert (newest.said, newest.shas) == (f"Thanks, pushed as {COMMIT[:12]}.", [COMMIT[:12]])
    lines = [click.unstyle(line) for line in format_series(series, "v1@example.org")]
    assert lines == [
        TITLE,
        "→ v1   2024-03-04  Ann, 1 patch",
        "        <v1@example.org>",
        "  v2   2024-03-11  Ann, 1 patch",
        "        <v2@example.org>",
        "",
        TITLE,
        "→ v1",
        "        <v1@example.org>",
        "  v2 (title, lines)",
        "        <v2@example.org>",
        f"  applied as {COMMIT[:12]}, Bob on 2024-03-12",
        f"    Thanks, pushed as {COMMIT[:12]}.",
        "    <t@example.org>",
    ]


def test_many_mails_are_described_in_order(filled: World) -> None:
    asked = ["t@example.org", "v2@example.org", "nobody@example.org", "v1@example.org"]
    with filled.connect() as connection:
        show_lists(connection, [HARBOR])
        found = [*describe_mails(connection, asked, MARCH_20)]
    versions = ["v1@example.org", "v2@example.org"]
    assert found == [
        {"message_id": asked[0], "versions": [], "state": None, "shas": [COMMIT[:12]]},
        {"message_id": asked[1], "versions": versions, "state": "applied", "shas": [COMMIT[:12]]},
        {"message_id": asked[2], "versions": [], "state": None, "shas": []},
        {"message_id": asked[3], "versions": versions, "state": "applied", "shas": [COMMIT[:12]]},
    ]


def test_open_patch_is_silent_if_its_list_goes_on_without_answers(filled: World) -> None:
    later = MARCH_20 + dt.timedelta(days=SILENT_DAYS)

    def find_state(now: dt.datetime = later) -> str:
        with filled.connect() as connection:
            show_lists(connection, [HARBOR])
            [change] = read_open(connection, HARBOR, now)
        assert change.versions[0].message_id == "o@example.org"
        return change.deciding.state

    assert find_state() == "open"  # the archive ends in March: nobody knows
    other = post("n", "Meeting", "On Thursday.\n", BOB, 15).replace(b"Mar", b"May")
    load(filled, other, month=APRIL)
    assert [find_state(now) for now in (MARCH_20, later)] == ["open", "silent"]
    answer = post("a", "Re: pier", "I shall look at it.\n", BOB, 15, "o")
    load(filled, other, answer, month=APRIL)
    assert find_state() == "open"


def test_list_that_is_not_shown_says_nothing(world: World) -> None:
    load(world, FIRST)
    answer = post("t", f"Re: [PATCH] {TITLE}", "Applied, thanks.\n", BOB, 12, "v1")
    load(world, answer, SECOND, list_name=PIER)
    world.series()
    with world.connect() as connection:
        show_lists(connection, [HARBOR])
        series = read_series(connection, "v1@example.org", MARCH_20)
        assert series is not None
        [[view]] = series.postings
        assert (view.state, view.reason_id) == ("open", None)
        assert read_series(connection, "v2@example.org", MARCH_20) is None
        [said] = describe_mails(connection, ["t@example.org"])
    assert said["shas"] == []


def test_shown_version_supersedes_over_a_hidden_one(world: World) -> None:
    third = patch("v3", f"[PATCH v3] {TITLE}", LINES[:14], day=15)
    load(world, FIRST, third)
    load(world, SECOND, list_name=PIER)
    world.series()
    for shown, reason in (([HARBOR], "v3"), ([HARBOR, PIER], "v2")):
        with world.connect() as connection:
            show_lists(connection, shown)
            series = read_series(connection, "v1@example.org", MARCH_20)
        assert series is not None
        first = series.changes[0].versions[0]
        assert (first.state, first.reason_id) == ("superseded", f"{reason}@example.org")


def test_patch_that_a_hidden_list_refuses_is_not_silent(world: World) -> None:
    load(world, FIRST, post("a", "Re: x", "Interesting.\n", BOB, 11, "v1"))
    load(world, post("t", "Re: x", "NAK.\n", BOB, 12, "v1"), list_name=PIER)
    world.series()
    with world.connect() as connection:
        show_lists(connection, [HARBOR])
        series = read_series(connection, "v1@example.org", MARCH_20 + dt.timedelta(days=900))
    assert series is not None
    assert series.changes[0].deciding.state == "open"


def test_version_in_a_hidden_list_is_not_named(world: World) -> None:
    load(world, FIRST, list_name=PIER)
    load(world, SECOND)
    world.series()
    with world.connect() as connection:
        assert find_previous(connection, "v2@example.org") == "v1@example.org"
        show_lists(connection, [HARBOR])
        series = read_series(connection, "v2@example.org", MARCH_20)
        with pytest.raises(NoPatchError, match="no earlier version of v2@"):
            find_previous(connection, "v2@example.org")
    assert series is not None
    assert "v1@example.org" not in str(series.as_json())
    newest = series.changes[0].deciding
    assert (series.series_id, newest.previous_id, newest.evidence) == ("v2@example.org", None, [])
    assert series.find_unknown("v2@example.org")[0].startswith("v1: not in this archive")


def test_commit_decides_what_no_mail_says(filled: World) -> None:
    with filled.connect() as connection:
        connection.execute(
            "insert into commits (list, month, repository, sha, parents, author_name, author_email,"
            " authored_at, committer_name, committer_email, committed_at, subject, title_key, body,"
            " trailers, named_mails, picked_from, reverts, files, added, removed, patch_id,"
            " line_digests, flags)"
            " select %s, '2024-03', 'crane', %s, '{}', '', '', now(), 'Bob', '', now(), '', '', '',"
            " '[]', '{}', '{}', '{}', '[]', 0, 0, '', '{}', '{}'",
            (HARBOR, COMMIT[::-1]),
        )
        connection.execute(
            "insert into commit_links (repository, sha, message_id, kind, place, evidence)"
            " values ('crane', %s, 'o@example.org', 'applied', 0, '{patch-id}')",
            (COMMIT[::-1],),
        )
        show_lists(connection, [HARBOR])
        series = read_series(connection, "o@example.org", MARCH_20)
        assert series is not None
        newest = series.changes[0].deciding
        assert (newest.state, newest.shas) == ("applied", [COMMIT[::-1]])
        assert any("committed by Bob on" in line for line in format_series(series, ""))
        assert [*read_open(connection, HARBOR, MARCH_20)] == []
        show_lists(connection, [PIER])
        assert read_series(connection, "o@example.org", MARCH_20) is None
