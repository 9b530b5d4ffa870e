"""Series as people read them: versions, states with their reasons, silence, closed lists."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import click
import psycopg
import pytest

from mail_assets.cli.series import format_series
from mail_assets.reading.patch_states import ask_states, describe_patch, say_change
from mail_assets.reading.patches import NoPatchError, find_previous
from mail_assets.reading.series import (
    NO_STANDING,
    SILENT_DAYS,
    Change,
    SeriesView,
    describe_mails,
    read_open,
    read_series,
)
from mail_assets.tables.lists import show_lists
from mail_assets_tests.steps.test_group_series import (
    ANN,
    BOB,
    EVE,
    FIRST,
    LINES,
    SECOND,
    TITLE,
    load,
    patch,
    post,
    states,
)
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, World

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


def read(
    world: World,
    message_id: str = "v1@example.org",
    *,
    shown: Sequence[str] = (HARBOR,),
    now: dt.datetime = MARCH_20,
) -> SeriesView:
    """Read the series of a mail with only some lists shown."""
    with world.connect() as connection:
        show_lists(connection, shown)
        series = read_series(connection, message_id, now)
    assert series is not None
    return series


@pytest.mark.parametrize("ids", [["p2@example.org"], ["p1@example.org", "p2@example.org"]])
def test_series_has_one_name_whichever_mails_are_asked_for(world: World, ids: list[str]) -> None:
    load(
        world,
        post("c", "[PATCH 0/2] Cranes", "Two of them.", day=5),
        patch("p1", "[PATCH 1/2] crane: One", LINES[20:30], day=5, answers="c"),
        patch("p2", "[PATCH 2/2] crane: Two", LINES[30:40], day=5, answers="c"),
    )
    world.series()
    with world.connect() as connection:
        show_lists(connection, [HARBOR])
        found = ask_states(connection, ids).read()
    assert {one: state.series_id for one, state in found.items()} == dict.fromkeys(
        ids, "c@example.org"
    )


def test_version_passed_on_by_another_renames_no_series(filled: World) -> None:
    series = read(filled)
    [[first], [second]] = series.postings
    first = first._replace(version=2, state="applied", shas=[COMMIT])
    copy = second._replace(version=1, is_taken_over=True, has_standing=True, title="pull: cranes")
    passed_on = series._replace(
        postings=[[first], [copy]], changes=[Change(first.change, [first, copy])]
    )
    assert passed_on.title == TITLE
    state = describe_patch(passed_on, "v1@example.org")
    assert state is not None
    assert state.words == (
        f"v2 of 2, applied as {COMMIT[:12]} on 2024-03-11; that of 2024-03-11 by somebody else "
        f"was applied as {COMMIT[:12]} on 2024-03-12"
    )


def test_series_has_versions_with_evidence_and_reason(filled: World) -> None:
    series = read(filled)
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
        f"    the person who says so {NO_STANDING}",
    ]


CAT = "Cat <cat@example.com>"
OTHER = patch("w", "[PATCH] pier: Paint it", LINES[40:50], sender=CAT)
MORE = patch("m", "[PATCH] pier: Build it", LINES[50:60])
OWN = patch("e", "[PATCH] pier: Sell it", LINES[30:40], sender=EVE)
APPLIED = "Applied, thanks.\n"


def say(name: str, body: str, sender: str = EVE, of: str = "v1", day: int = 6) -> bytes:
    return post(name, "Re: [PATCH]", body, sender, day, of)


LEV = "Lev <lev@example.org>"
SPRING = (APRIL, MAY, "2024-06")
#: Bob decides on the patches of three others, in three months.
STANDING = (
    OTHER, say("x", APPLIED, BOB, "w"),
    MORE, say("y", APPLIED, BOB, "m"),
    patch("l", "[PATCH] pier: Lift it", LINES[20:30], sender=LEV), say("z", "NAK.\n", BOB, "l"),
)  # fmt: skip


def load_months(world: World, *mails: bytes, **more: Any) -> None:
    """Load mails, but those of STANDING as mails of three months."""
    for at, month in enumerate(SPRING):
        if some := [one for one in STANDING[2 * at : 2 * at + 2] if one in mails]:
            load(world, *some, month=month, **more)
    load(world, *(one for one in mails if one not in STANDING), **more)


@pytest.mark.parametrize(("mails", "state", "is_doubted"), [
    ([say("t", APPLIED)], "applied", True),
    ([say("t", f"Pushed as {COMMIT}.\n")], "applied", True),
    ([say("t", "Applied, thanks!\n\n[1/1] crane: Lift\n  commit: 1234567abcde\n")], "open", False),
    ([say("t", "NAK, this breaks the pier.\n")], "rejected", True),
    ([MORE, say("t", APPLIED), say("u", APPLIED, of="m")], "applied", True),  # one author's
    ([OWN, say("t", APPLIED), say("u", "Pushed to main.\n", of="e")], "applied", True),  # his
    ([OTHER, say("t", APPLIED), say("u", "I like it.\n", of="w")], "applied", True),
    (  # the name of somebody with standing
        [
            OTHER,
            say("x", APPLIED, BOB, "w"),
            say("y", APPLIED, BOB, "m"),
            MORE,
            say("t", APPLIED, "Bob <bob@example.net>"),
        ],
        "applied",
        True,
    ),
    ([say("t", "Please ignore this patch.\n")], "open", False),  # not the author
    ([say("t", "This is superseded by v2 of the series.\n")], "open", False),
    ([say("t", "> Applied, thanks.\n\nIt was not.\n")], "open", False),
    ([say("s", "Hello.\n"), say("t", "NAK.\n", of="s")], "open", False),
    # with standing: patches of three others in three months
    ([*STANDING, say("t", APPLIED, BOB)], "applied", False),
    ([*STANDING, say("t", "NAK.\n", BOB)], "rejected", False),
    ([*STANDING[:4], say("t", APPLIED, BOB)], "applied", True),
    ([*STANDING[:3], say("y", APPLIED, BOB, "m", 7), STANDING[4], say("z", APPLIED, BOB, "l", 7),
      say("t", APPLIED, BOB)], "applied", True),  # in fewer months
])  # fmt: skip
def test_verdict_of_somebody_without_standing_is_doubted(
    world: World, mails: list[bytes], state: str, is_doubted: bool
) -> None:
    load_months(world, FIRST, *mails)
    world.series()
    series = read(world)
    [change] = series.change_of("v1@example.org")
    assert (change.deciding.state, bool(change.deciding.doubt)) == (state, is_doubted)
    assert (NO_STANDING in say_change(change)) is is_doubted
    assert any(NO_STANDING in line for line in change.find_unknown()) is is_doubted
    assert any(NO_STANDING in line for line in format_series(series, "")) is is_doubted


BAD = "0badc0ffee12"
COPY = patch("c", f"[PATCH v9] {TITLE}", LINES[:12], sender=EVE, day=13)
SAME = patch("c", f"[PATCH v9] {TITLE}", LINES[:10], sender=EVE, day=13)
MALLORY = "Mallory <mallory@example.com>"
NAMESAKE = "Ann <ann@evil.example>"


def dated(raw: bytes, date: str = "01 Mar 2024 09:00:00 +0000") -> bytes:
    """Return a mail with another Date; it arrived when it did."""
    head, _, rest = raw.partition(b"\nDate: ")
    return b"\n".join((head, b"Date: " + date.encode(), rest.partition(b"\n")[2]))


def in_her_name(raw: bytes) -> bytes:
    return raw.replace(b"\n\nBecause.", b"\n\nFrom: " + ANN.encode() + b"\n\nBecause.")


@pytest.mark.parametrize(
    ("mails", "words", "reason"),
    [
        # a claim in the place of a decision
        (
            [*STANDING, say("t", APPLIED, BOB), say("e", f"Pushed as {BAD}.\n", day=9)],
            "applied",
            "t",
        ),
        (
            [
                *STANDING,
                say("t", f"Pushed as {COMMIT}.\n", BOB),
                say("e", f"Pushed as {BAD}.\n", day=9),
            ],
            f"applied as {COMMIT[:12]}",
            "t",
        ),
        (
            [*STANDING, say("t", APPLIED, BOB), dated(say("e", f"Pushed as {BAD}.\n", day=9))],
            "applied",
            "t",
        ),
        ([*STANDING, say("t", "NAK.\n", BOB), say("e", "NAK.\n", day=9)], "rejected", "t"),
        ([*STANDING, say("t", "NAK.\n", BOB), say("e", APPLIED, day=9)], "rejected", "t"),
        (
            [say("t", "Please ignore this patch.\n", ANN), say("e", "NAK.\n", day=9)],
            "withdrawn",
            "t",
        ),
        ([SECOND, say("e", f"Pushed as {BAD}.\n", day=13)], "v2: open", None),
        # a copy in the place of the newest version
        ([SECOND, COPY], "v2: open", None),
        ([SECOND, in_her_name(COPY)], "v2: open", None),
        ([SECOND, COPY, say("e", "Please ignore this patch.\n", EVE, "c", 14)], "v2: open", None),
        ([SECOND, COPY, say("e", APPLIED, MALLORY, "c", 14)], "v2: open", None),
        ([*STANDING, say("t", "NAK.\n", BOB), SAME], "rejected", "t"),
        ([say("t", "Please ignore this patch.\n", ANN), SAME], "withdrawn", "t"),
        # in the name of the author, from another address
        ([say("e", "Please drop this patch.\n", NAMESAKE)], "open", None),
        ([say("e", "This is superseded by v2 of the series.\n", NAMESAKE)], "open", None),
        ([SECOND, COPY.replace(EVE.encode(), NAMESAKE.encode())], "v2: open", None),
        # with a date before that of the patch
        ([SECOND, dated(COPY)], "v2: open", None),
        ([SECOND, dated(in_her_name(SAME))], "v2: open", None),
        # somebody with standing takes it
        ([*STANDING, SECOND, COPY, say("t", APPLIED, BOB, "c", 14)], "v9: applied", "t"),
        ([*STANDING, say("e", APPLIED), say("t", "NAK.\n", BOB, day=9)], "rejected", "t"),
    ],
)
def test_stranger_takes_the_place_of_no_decision(
    world: World, mails: list[bytes], words: str, reason: str | None
) -> None:
    load_months(world, FIRST, *mails)
    world.series()
    series = read(world)
    with world.connect() as connection:
        show_lists(connection, [HARBOR])
        latest = connection.execute(
            "select message_id from shown_patch_states join patch_series s using (message_id)"
            " where shown_patch_states.state = 'latest' and (series_id, change) in"
            "       (select series_id, change from patch_series where message_id like 'v1@%')"
        ).fetchall()
    assert series.series_id == "v1@example.org"
    [change] = series.change_of("v1@example.org")
    assert say_change(change).startswith(words)
    assert NO_STANDING not in say_change(change)
    assert (change.deciding.reason_id or "").partition("@")[0] == (reason or "")
    assert latest == [(change.deciding.message_id,)]
    others = {one.message_id for one in change.versions if one.is_taken_over}
    assert others <= {"c@example.org"}
    assert world.series(rebuild=True).counts["written"] == 0


@pytest.mark.parametrize("copy", [COPY, dated(COPY), in_her_name(SAME), dated(in_her_name(SAME))])
def test_attack_that_is_loaded_first_gains_nothing(world: World, copy: bytes) -> None:
    attack = (copy, say("e", f"Pushed as {BAD}.\n", day=13), say("f", APPLIED, EVE, "c", 14))
    genuine = (FIRST, SECOND, *STANDING, say("t", "NAK.\n", BOB, "v2", 12))
    columns = "message_id, series_id, posting, change, previous_id, by_stranger, state, reason_id"
    found = []
    for first, second in ((PIER, HARBOR), (HARBOR, PIER)):
        for name in (first, second):
            load_months(world, *(genuine if name == HARBOR else attack), list_name=name)
            world.series()
        found.append(world.rows("patch_series", columns))
        for name in (PIER, HARBOR):
            for month in (MARCH, *(SPRING if name == HARBOR else ())):
                load(world, month=month, list_name=name, at=1)
        world.series()
    assert found[0] == found[1]
    states = {row[0].partition("@")[0]: (row[1], *row[5:7]) for row in found[0]}
    assert states["v2"] == ("v1@example.org", False, "rejected")
    assert states["c"] == ("v1@example.org", True, "open")


def test_decision_counts_when_its_sender_gets_standing(world: World) -> None:
    decided = (FIRST, say("t", "NAK.\n", BOB), say("e", APPLIED, day=9))
    load(world, *decided)
    world.series()
    assert states(world)["v1"][:2] == ("applied", "e@example.org")
    load_months(world, *decided, *STANDING, at=1)
    world.series()
    assert states(world)["v1"][:2] == ("rejected", "t@example.org")
    load(world, month=APRIL, at=2)
    world.series()
    assert states(world)["v1"][:2] == ("applied", "e@example.org")
    with world.connect() as connection:
        commit(connection, COMMIT, "bob@example.org")
    world.series()
    assert states(world)["v1"][:2] == ("rejected", "t@example.org")
    assert world.series(rebuild=True).counts["written"] == 0


def test_people_without_an_address_are_not_one(world: World) -> None:
    unknown = "{} via Crane <crane@lists.example.org>"
    listed = b"List-Post: <mailto:crane@lists.example.org>\nSubject:"
    mails = [
        patch("v1", f"[PATCH] {TITLE}", LINES[:10], sender=unknown.format("Ann")),
        patch("v2", f"[PATCH v2] {TITLE}", LINES[:12], sender=unknown.format("Eve"), day=11),
        say("t", "Please ignore this patch.\n", unknown.format("Eve")),
    ]
    load(world, *(one.replace(b"Subject:", listed, 1) for one in mails))
    world.series()
    assert world.rows("messages", "from_email") == [("",)] * 3
    assert states(world)["v1"] == ("open", None, [])


def test_standing_counts_only_what_is_shown(world: World) -> None:
    load(world, FIRST, say("t", APPLIED, BOB))
    load_months(world, *STANDING, list_name=PIER)
    world.series()
    for shown, has_standing in (([HARBOR], False), ([HARBOR, PIER], True)):
        series = read(world, shown=shown)
        assert series.changes[0].deciding.has_standing is has_standing


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


def test_open_patch_is_silent_if_its_list_goes_on_unanswered(filled: World) -> None:
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


@pytest.mark.parametrize(("answered", "silent"), [
    # "For the series: Reviewed-by"
    ("c", set()),
    # the cover letter has no answer of its own, its series has
    ("p1", {"p2"}),
    (None, {"c", "p1", "p2"}),
])  # fmt: skip
def test_answer_to_a_cover_letter_is_one_to_its_series(
    world: World, answered: str | None, silent: set[str]
) -> None:
    series = [
        post("c", "[PATCH 0/2] Cranes", "Two of them.\n", day=11),
        patch("p1", "[PATCH 1/2] crane: One", LINES[:10], answers="c", day=11),
        patch("p2", "[PATCH 2/2] crane: Two", LINES[10:20], answers="c", day=11),
    ]
    answers = {"c": "c", "p1": "c@example.org> <p1"}
    answer = [post("a", "Re: x", "I like it.\n", BOB, 12, answers[x]) for x in [answered] if x]
    load(world, *series, *answer)
    load(
        world, post("n", "Meeting", "On Thursday.\n", BOB, 15).replace(b"Mar", b"May"), month=APRIL
    )
    world.series()
    found = read(world, "c@example.org", now=MARCH_20 + dt.timedelta(days=200))
    views = [one for some in found.postings for one in some]
    assert {x.message_id.partition("@")[0] for x in views if x.state == "silent"} == silent


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
        series = read(world, shown=shown)
        first = series.changes[0].versions[0]
        assert (first.state, first.reason_id) == ("superseded", f"{reason}@example.org")


def test_patch_that_a_hidden_list_refuses_is_not_silent(world: World) -> None:
    load(world, FIRST, post("a", "Re: x", "Interesting.\n", BOB, 11, "v1"))
    load(world, post("t", "Re: x", "NAK.\n", BOB, 12, "v1"), list_name=PIER)
    world.series()
    series = read(world, now=MARCH_20 + dt.timedelta(days=900))
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


def commit(connection: psycopg.Connection, sha: str, committer: str = "") -> None:
    """Store a commit by Bob, of an address."""
    connection.execute(
        "insert into commits (list, month, repository, sha, parents, author_name, author_email,"
        " authored_at, committer_name, committer_email, committed_at, subject, title_key, body,"
        " trailers, named_mails, picked_from, reverts, files, added, removed, patch_id,"
        " line_digests, flags)"
        " select %s, '2024-03', 'crane', %s, '{}', '', '', now(), 'Bob', %s, now(), '', '', '',"
        " '[]', '{}', '{}', '{}', '[]', 0, 0, '', '{}', '{}'",
        (HARBOR, sha, committer),
    )


def commit_patch(connection: psycopg.Connection, sha: str, message_id: str) -> None:
    """Store a commit by Bob that was applied from a mail."""
    commit(connection, sha)
    connection.execute(
        "insert into commit_links (repository, sha, message_id, kind, place, evidence)"
        " values ('crane', %s, %s, 'applied', 0, '{patch-id}')",
        (sha, message_id),
    )


def test_committer_has_standing(world: World) -> None:
    load(world, FIRST, say("t", APPLIED, BOB))
    world.series()
    with world.connect() as connection:
        commit(connection, COMMIT, "BOB@example.org")
    assert read(world).changes[0].deciding.has_standing is True


def test_commit_decides_what_no_mail_says(filled: World) -> None:
    with filled.connect() as connection:
        commit_patch(connection, COMMIT[::-1], "o@example.org")
    series = read(filled, "o@example.org")
    newest = series.changes[0].deciding
    assert (newest.state, newest.shas) == ("applied", [COMMIT[::-1]])
    assert any("committed by Bob on" in line for line in format_series(series, ""))
    with filled.connect() as connection:
        show_lists(connection, [HARBOR])
        assert [*read_open(connection, HARBOR, MARCH_20)] == []
        show_lists(connection, [PIER])
        assert read_series(connection, "o@example.org", MARCH_20) is None


@pytest.mark.parametrize("said", [f"Pushed as {BAD}.\n", "NAK.\n"])
def test_stranger_adds_nothing_to_what_a_commit_decides(filled: World, said: str) -> None:
    load(filled, patch("o", "[PATCH] pier: Stay open for longer", LINES[30:40], day=14),
         say("e", said, EVE, "o", 15))  # fmt: skip
    filled.series()
    with filled.connect() as connection:
        commit_patch(connection, COMMIT[::-1], "o@example.org")
    newest = read(filled, "o@example.org").changes[0].deciding
    assert (newest.state, newest.said, newest.shas) == ("applied", None, [COMMIT[::-1]])


def test_patch_that_only_its_lines_join_is_another_change(world: World) -> None:
    load(world, FIRST, patch("v2", "[PATCH v2] pier: Other words", LINES[:9], day=11))
    world.series()
    series = read(world, "v2@example.org")
    first, second = (change.deciding for change in series.changes)
    assert (first.state, first.reason_id) == ("superseded", "v2@example.org")
    assert (second.state, second.previous_id) == ("open", "v1@example.org")
    thin = f"whether v2 is a version of v1 of 2024-03-04, “{TITLE}”: only lines says so"
    assert thin in series.find_unknown("v2@example.org")
