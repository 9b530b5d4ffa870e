"""Patches are grouped into series: after changes, in any order, after kills and forgetting."""

import random
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.forgetting.remove_list import remove_list
from mail_assets.steps import group_series as step
from mail_assets.tables import patch_series as table
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, Killed, World

#: All columns except the copy that is read, which can be of either list.
COLUMNS = (
    "message_id, place, series_id, posting, change, previous_id, evidence, is_remark, "
    "is_taken_over, by_stranger, is_newest, state, reason_id, shas"
)
LINES = [f"crane number {n} lifts {n * 7} tons;" for n in range(60)]
ANN, BOB, EVE = "Ann <ann@example.org>", "Bob <bob@example.org>", "Eve <eve@example.net>"


def diff(lines: Sequence[str], path: str = "crane.c") -> str:
    added = "\n".join(f"+{line}" for line in lines)
    return (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -1,1 +1,{len(lines) + 1} @@\n top\n{added}\n--\n2.40\n"
    )


def post(
    name: str, subject: str, body: str, sender: str = ANN, day: int = 4, answers: str = ""
) -> bytes:
    lines = [
        f"From x@example.org Mon Mar {day:2d} 09:00:00 2024",
        f"From: {sender}",
        f"Date: {day:02d} Mar 2024 09:00:00 +0000",
        f"Message-ID: <{name}@example.org>",
        f"Subject: {subject}",
        *([f"References: <{answers}@example.org>"] if answers else []),
    ]
    return "\n".join([*lines, "", body, "", ""]).encode()


def patch(name: str, subject: str, lines: Sequence[str], note: str = "", **more: Any) -> bytes:
    return post(name, subject, f"Because.\n---\n{note}\n\n{diff(lines)}", **more)


def load(
    world: World, *mails: bytes, month: str = MARCH, list_name: str = HARBOR, at: int = 0
) -> None:
    world.archive(month, *mails, list_name=list_name, at=at)
    world.archives(month, list_name, allow_loss=True)
    world.messages(month, list_name)
    world.patches(month, list_name)


def states(world: World) -> dict[str, tuple[Any, ...]]:
    """Return state, reason and commits by the name of the mail."""
    rows = world.rows("patch_series", "message_id, state, reason_id, shas")
    return {row[0].partition("@")[0]: row[1:] for row in rows}


TITLE = "crane: Lift heavier loads now"
FIRST = patch("v1", f"[PATCH] {TITLE}", LINES[:10])
SECOND = patch("v2", f"[PATCH v2] {TITLE}", LINES[:12], day=11)


def test_two_versions_become_a_series(world: World) -> None:
    load(world, FIRST, SECOND)
    outcome = world.series()
    assert (outcome.counts["patches"], outcome.counts["series"]) == (2, 1)
    rows = world.rows("patch_series", "message_id, previous_id, evidence, state, is_newest")
    assert rows == [
        ("v1@example.org", None, [], "superseded", False),
        ("v2@example.org", "v1@example.org", ["title", "lines"], "open", True),
    ]


def test_second_run_writes_nothing(world: World) -> None:
    load(world, FIRST, SECOND)
    first = world.series()
    before = world.writes()
    outcome = world.series()
    assert (outcome.digest, outcome.changed) == (first.digest, False)
    assert world.writes() == before
    assert world.series(rebuild=True).counts["written"] == 0


def test_rebuild_mends_rows_that_were_changed_or_lost(world: World) -> None:
    load(world, FIRST, SECOND)
    world.series()
    whole = world.rows("patch_series")
    with world.connect() as connection:
        connection.execute("update patch_series set state = 'applied' where message_id like 'v1%'")
        connection.execute("delete from patch_series where message_id like 'v2%'")
        connection.execute("delete from patch_keys")
    world.series(rebuild=True)
    assert world.rows("patch_series") == whole


def test_answers_decide_the_state(world: World) -> None:
    commit = "3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345"
    cover = post("c", "[PATCH 0/2] Cranes", "Two of them.", day=5)
    one = patch("p1", "[PATCH 1/2] crane: One", LINES[20:30], day=5, answers="c")
    two = patch("p2", "[PATCH 2/2] crane: Two", LINES[30:40], day=5, answers="c")
    thanks = f"Applied, thanks!\n\n[2/2] crane: Two\n      commit: {commit}\n"
    load(
        world,
        FIRST,
        cover,
        one,
        two,
        post("t", "Re: [PATCH 0/2] Cranes", thanks, BOB, 6, "c"),
        post("n", f"Re: [PATCH] {TITLE}", "NAK, this breaks the pier.\n", BOB, 6, "v1"),
    )
    world.series()
    assert states(world) == {
        "c": ("open", None, []),
        "p1": ("open", None, []),
        "p2": ("applied", "t@example.org", [commit]),
        "v1": ("rejected", "n@example.org", []),
    }
    with world.connect() as connection:
        row = connection.execute(
            "select substr(m.body_text, reason_start + 1, reason_end - reason_start)"
            "  from patch_series join messages m on m.message_id = reason_id"
            " where patch_series.message_id like 'v1%'"
        ).fetchone()
    assert row == ("NAK, this breaks the pier.",)


@pytest.mark.parametrize(
    ("said", "answers", "state"),
    [
        ("Merged.\n", "v1", "applied"),
        ("Merged.\n", "r", "open"),  # the suggestion of the review
    ],
)
def test_merged_by_the_author_below_own_patch_counts(
    world: World, said: str, answers: str, state: str
) -> None:
    review = post("r", "Re: x", "Lift it higher.\n", BOB, 5, "v1")
    load(world, FIRST, review, post("t", "Re: x", said, ANN, 6, answers))
    world.series()
    assert states(world)["v1"][0] == state


@pytest.mark.parametrize(
    ("day", "lines", "state"),
    [
        (20, LINES[:10], "applied"),
        (5, LINES[:10], "open"),  # before the resend
        (20, LINES[:12], "open"),  # another diff
    ],
)
def test_patch_sent_again_is_applied_with_its_diff(
    world: World, day: int, lines: Sequence[str], state: str
) -> None:
    again = patch("v2", f"[PATCH RESEND] {TITLE}", lines, day=11)
    thanks = post("t", f"Re: [PATCH] {TITLE}", "Applied, thanks.\n", BOB, day, "v1")
    load(world, FIRST, again, thanks)
    world.series()
    assert states(world)["v2"][0] == state


def test_answer_that_arrives_first_counts(world: World) -> None:
    load(world, post("t", "Re: x", "Applied, thanks.\n", BOB, 6, "v1"))
    world.series()
    load(world, FIRST, month=APRIL)
    world.series()
    assert states(world)["v1"] == ("applied", "t@example.org", [])


def test_strangers_version_joins_no_series(world: World) -> None:
    load(world, FIRST, patch("x", f"[PATCH v9] {TITLE}", LINES[40:50], sender=EVE, day=12))
    world.series()
    assert world.rows("patch_series", "message_id, series_id, state") == [
        ("v1@example.org", "v1@example.org", "open"),
        ("x@example.org", "x@example.org", "open"),
    ]


def test_strangers_version_with_the_diff_is_marked(world: World) -> None:
    load(world, FIRST, patch("x", f"[PATCH v9] {TITLE}", LINES[:12], sender=EVE, day=12))
    world.series()
    columns = "message_id, series_id, state, is_taken_over, by_stranger, is_newest"
    assert world.rows("patch_series", columns) == [
        ("v1@example.org", "v1@example.org", "open", False, False, True),
        ("x@example.org", "v1@example.org", "open", True, True, True),
    ]


def test_contested_answer_decides_no_state(world: World) -> None:
    said = post("t", "Re: x", "Applied, thanks.\n", BOB, 6, "v1")
    load(world, FIRST, said, post("t", "Re: x", "Something else.\n", EVE, 7, "v1"))
    world.series()
    assert states(world)["v1"] == ("open", None, [])
    load(world, FIRST, said, at=1)
    world.series()
    assert states(world)["v1"] == ("applied", "t@example.org", [])


@pytest.mark.parametrize("place", [(HARBOR, APRIL), (PIER, MARCH)])
def test_contested_patch_is_grouped_when_settled(world: World, place: tuple[str, str]) -> None:
    list_name, month = place
    forged = post("v2", "Buy this", "Nothing to see.", EVE, day=1)
    load(world, forged, list_name=list_name, month=month)
    load(world, FIRST, SECOND, at=1)
    world.series()
    load(world, list_name=list_name, month=month, at=2)
    world.series()
    grown = world.rows("patch_series")
    assert len(grown) == 2
    assert world.series(rebuild=True).counts["written"] == 0
    assert world.rows("patch_series") == grown


def test_removed_list_leaves_the_series_of_another(world: World) -> None:
    load(world, FIRST)
    load(world, SECOND, list_name=PIER)
    world.series()
    assert states(world)["v1"][0] == "superseded"
    with world.workspace() as workspace:
        remove_list(workspace, PIER, world.open_index)
    world.series()
    assert states(world) == {"v1": ("open", None, [])}
    assert world.series(rebuild=True).counts["written"] == 0


def test_figures_are_those_of_all_rows(world: World) -> None:
    load(world, FIRST, SECOND, post("n", "Re: x", "NAK, this breaks the pier.\n", BOB, 12, "v2"))
    counts = world.series().counts
    assert {name: counts[name] for name in table.FIGURES} == {
        "patches": 2, "series": 1, "joined": 1, "open": 0, "applied": 0, "superseded": 1,
        "rejected": 1, "withdrawn": 0,
    }  # fmt: skip
    world.forget(ForgetRequest(["v2@example.org"], [], "asked", "me"))
    counts = world.series().counts
    assert (counts["patches"], counts["joined"], counts["open"]) == (1, 0, 1)
    assert world.series(rebuild=True).counts["written"] == 0


def test_forgotten_mail_leaves_no_trace(world: World) -> None:
    answer = post("t", "Re: x", "Please ignore this patch.\n", ANN, 12, "v2")
    third = patch("v3", f"[PATCH v3] {TITLE}", LINES[:13], day=14, answers="v2")
    load(world, FIRST, SECOND, third, answer)
    world.series()
    world.forget(ForgetRequest(["v2@example.org", "t@example.org"], [], "asked", "me"))
    with world.connect() as connection:
        for name in ("patch_series", "patch_states", "patch_outcomes", "patch_changes"):
            text = str(connection.execute(f"select * from {name}").fetchall())
            assert "v2@" not in text, name
            assert "t@" not in text, name
    assert states(world) == {"v1": ("superseded", "v3@example.org", []), "v3": ("open", None, [])}
    before = world.rows("patch_series")
    assert world.series(rebuild=True).counts["written"] == 0
    assert world.rows("patch_series") == before


def test_killed_run_keeps_its_portions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mails = [patch(f"m{n}", f"[PATCH v{n}] {TITLE}", LINES[: 8 + n], day=n) for n in range(1, 9)]
    load(world, *mails)
    monkeypatch.setattr(step, "PORTION", 2)
    write, portions = table.replace_rows, []

    def killed(connection: psycopg.Connection, *rest: Any) -> Any:
        portions.append(write(connection, *rest))
        if len(portions) == 3:
            raise Killed
        return portions[-1]

    with monkeypatch.context() as patched:
        patched.setattr(step, "replace_rows", killed)
        with pytest.raises(Killed):
            world.series()
    world.series()
    assert {row[2] for row in world.rows("patch_series", COLUMNS)} == {"m1@example.org"}
    assert world.series(rebuild=True).counts["written"] == 0


class Chance(random.Random):
    """Maker of random mail with few titles, people, lines and names, so that much is related."""

    def mails(self, count: int) -> list[bytes]:
        """Return mails in random order."""
        return [self.mail(f"m{n}", [f"m{x}" for x in range(count)]) for n in range(count)]

    def mail(self, name: str, others: Sequence[str]) -> bytes:
        """Return a patch, a cover letter or an answer."""
        sender, day = self.choice((ANN, ANN, BOB, EVE)), self.randint(1, 28)
        answers = self.choice(others) if self.random() < 0.4 else ""
        kind = self.random()
        if kind < 0.2:
            said = ("Applied, thanks.", "NAK.", "Please ignore.", "Applied 1-2.", "I see.")
            return post(name, "Re: crane", self.choice(said), sender, day, self.choice(others))
        version, total = self.randint(1, 3), self.randint(1, 3)
        part = self.randint(0, total)
        label = f"[PATCH v{version}]" if total == 1 else f"[PATCH v{version} {part}/{total}]"
        title = self.choice(
            ("crane: Lift more than before", "Fix build", "pier: Do not sink so soon")
        )
        if total > 1 and part == 0:
            return post(name, f"{label} {title}", "All of it.", sender, day, answers)
        start = self.choice((0, 20, 40))
        lines = LINES[start : start + self.randint(5, 12)]
        note = f"v1: https://lists.example.org/{self.choice(others)}@example.org/"
        return patch(
            name, f"{label} {title}", lines, note * (self.random() < 0.2), sender=sender, day=day,
            answers=answers,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_any_order_gives_what_a_build_from_nothing_gives(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = Chance(seed)
    monkeypatch.setattr(step, "PORTION", chance.choice((3, 5_000)))
    monkeypatch.setattr(table, "WINDOW", chance.choice((1, 2, 6)))
    mails = chance.mails(40)
    places = [(HARBOR, MARCH), (HARBOR, APRIL), (PIER, MARCH)]
    for at in range(5):
        for list_name, month in chance.sample(places, chance.randint(1, 3)):
            load(
                world, *chance.sample(mails, chance.randint(0, 20)), month=month,
                list_name=list_name, at=at,
            )  # fmt: skip
            if chance.random() < 0.7:
                world.series()
        outcome = world.series()
        grown = world.rows("patch_series", COLUMNS)
        with world.connect() as connection:
            connection.execute("truncate patch_series, patch_keys, patch_outcomes, patch_changes")
            connection.execute("delete from partitions where asset = 'patch_series'")
        again = world.series()
        assert world.rows("patch_series", COLUMNS) == grown
        assert (again.digest, again.counts["series"]) == (outcome.digest, outcome.counts["series"])


def test_patch_that_comes_back_to_its_month_is_grouped_again(world: World) -> None:
    other, answer = post("o", "Cranes", "Hello."), post("t", "Re: x", "Applied.", BOB, 6, "v1")
    load(world, FIRST, answer)
    load(world, other, month=APRIL)
    world.series()
    before = world.rows("patch_series", "message_id, month, state")
    for at, mails in ((1, (other,)), (2, (FIRST, answer))):
        for month in (MARCH, APRIL):
            some = mails if month == MARCH else ((FIRST, answer) if at == 1 else (other,))
            world.archive(month, *some, at=at)
            world.archives(month, allow_loss=True)
            world.messages(month)
        world.series()  # the rows of patches are those of before
    assert world.rows("patch_series", "message_id, month, state") == before
