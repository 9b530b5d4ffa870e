"""Patches, commits, series and links converge after a kill at any statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol

import psycopg
import pytest

from mail_assets.steps import group_series, link_commits
from mail_assets_tests.crane import COMMITTED, Crane
from mail_assets_tests.sources.inboxes import git
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
from mail_assets_tests.world import APRIL, Killed, World

#: All results of a run, in an order that does not depend on the places of rows.
SERIES = ("patch_series", "patch_keys", "patch_outcomes", "patch_changes")
LINKS = ("commit_links", "commit_link_months", "commit_link_changes", "commit_link_sources")
#: Most kills of one run: a run with more never ends.
MOST = 400


@contextmanager
def killed_at(number: int) -> Iterator[None]:
    """Replace the n-th statement from now on by a kill, in any cursor."""
    sent = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def send(*arguments: Any, **named: Any) -> Any:
            nonlocal sent
            sent += 1
            if sent == number:
                raise Killed
            return method(*arguments, **named)

        return send

    with pytest.MonkeyPatch.context() as patched:
        for cursor in (psycopg.Cursor, psycopg.ServerCursor):
            patched.setattr(cursor, "execute", counted(cursor.execute))
        patched.setattr(psycopg.Cursor, "copy", counted(psycopg.Cursor.copy))
        yield


def kill_everywhere(run: Callable[[], object], change: Callable[[], object]) -> Iterator[int]:
    """Yield after each killed run, each killed one statement later, until a run completes."""
    for number in range(1, MOST):
        change()
        try:
            with killed_at(number):
                run()
        except Killed:
            yield number
        else:
            return
    raise AssertionError(f"more than {MOST} statements")


def holds(world: World, tables: tuple[str, ...]) -> dict[str, Any]:
    """Return the rows of tables, and the digest of the asset."""
    digest = world.rows("partitions", "digest", f"asset = '{tables[0]}'")
    columns = {"commit_link_changes": "repository, sha"}
    return {one: world.rows(one, columns.get(one, "*")) for one in tables} | {"digest": digest}


class Change(Protocol):
    """A change of the input of a run, made and undone in turn."""

    state: bool

    def __call__(self) -> None:
        """Make the change, or undo it."""


class Alternate:
    """A change that alternates between two actions."""

    def __init__(self, *two: Callable[[], object]) -> None:
        self._two, self.state = two, False

    def __call__(self) -> None:
        self.state = not self.state
        self._two[self.state]()


class Toggle:
    """A change that deletes rows of patches and restores them; the months of messages record it."""

    def __init__(self, world: World, where: str) -> None:
        self._world, self.state = world, False
        self._sql(f"create table kept as select * from patches where {where}")
        self.where = where

    def __call__(self) -> None:
        self.state = not self.state
        self._sql(
            f"delete from patches where {self.where}"
            if self.state
            else "insert into patches select * from kept"
        )
        self._sql(f"update partitions set digest = '{self.state}' where asset = 'patches'")

    def _sql(self, text: str) -> None:
        with self._world.connect() as connection:
            connection.execute(text.encode())


def converges(
    world: World, tables: tuple[str, ...], run: Callable[[], object], toggle: Change
) -> int:
    """Kill a run at each statement, complete it by another, compare; return the kills."""
    expected = {}
    for _ in range(2):
        toggle()
        run()
        expected[toggle.state] = holds(world, tables)
    assert expected[False] != expected[True]
    kills = 0
    for number in kill_everywhere(run, toggle):
        run()
        assert holds(world, tables) == expected[toggle.state], number
        kills = number
    assert holds(world, tables) == expected[toggle.state]
    return kills


@pytest.mark.slow
def test_patches_converge_killed_at_any_statement(world: World) -> None:
    before = [patch("a", f"[PATCH] {TITLE}", LINES), patch("b", "[PATCH] pier: Sink", LINES)]
    after = [patch("a", f"[PATCH] {TITLE} again", LINES[:9]), post("b", "pier", "Sink.\n")]
    clock = count()
    toggle = Alternate(
        *(lambda some=some: world.load(*some, at=next(clock)) for some in (before, after))
    )
    assert converges(world, ("patches",), world.patches, toggle) > 5


@pytest.mark.slow
def test_commits_converge_killed_at_any_statement(crane: Crane) -> None:
    here = crane.made.folder
    heads = [crane.commit(), crane.commit("again", b"int x;\n")]
    heads[0] = crane.made.commit({"pier.c": b"int y;\n"}, "other", committed=COMMITTED, parents=[])
    toggle = Alternate(
        *(lambda sha=sha: git(here, "update-ref", "refs/heads/main", sha) for sha in heads)
    )
    assert converges(crane.world, ("commits",), crane.read, toggle) > 5


@pytest.mark.slow
def test_series_converge_after_any_kill(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_series, "PORTION", 2)
    third = patch("v3", f"[PATCH v3] {TITLE}", LINES[:14], day=15)
    other = patch("o", "[PATCH] pier: Do not sink so soon", LINES[30:40], day=15)
    load(world, FIRST, SECOND, third, other)
    load(world, post("t", "Re: x", "Applied, thanks.\n", BOB, 6, "v2"), month=APRIL)
    world.series()
    toggle = Toggle(world, "message_id in ('v2@example.org', 'o@example.org')")
    assert converges(world, SERIES, world.series, toggle) > 30


@pytest.mark.slow
def test_links_converge_after_any_kill(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_commits, "PORTION", 1)
    crane = Crane(world)
    sha = crane.commit()
    again = crane.commit(
        "crane: Lift it\n\nLink: https://x.example/r/v3@example.org\n", b"int x;\n"
    )
    world.load(
        crane.mail("v1", sha),
        crane.mail("v2", sha, "[PATCH v2] crane: know the limit"),
        crane.mail("v3", again, "[PATCH] crane: Lift it"),
        last="patches",
    )
    crane.follow()
    assert crane.links(sha) == ["applied v2", "version v1"]
    toggle = Toggle(world, "message_id in ('v2@example.org', 'v3@example.org')")
    assert converges(world, LINKS, crane.link, toggle) > 20


@pytest.mark.slow
def test_killed_links_are_made_when_mail_changes_back(crane: Crane) -> None:
    sha = crane.commit()
    crane.world.load(crane.mail("v1", sha), crane.mail("v2", sha), last="patches")
    crane.follow()
    before = holds(crane.world, LINKS)
    for number in range(1, MOST):
        toggle = Toggle(crane.world, "message_id = 'v2@example.org'")
        marks = crane.world.rows("partitions", "digest", "asset = 'patches'")
        toggle()
        try:
            with killed_at(number):
                crane.link()
        except Killed:
            pass
        else:
            break
        toggle()
        with crane.world.connect() as connection:
            connection.execute(
                "update partitions set digest = %s where asset = 'patches'", marks[0]
            )
            connection.execute("drop table kept")
        crane.link()
        assert holds(crane.world, LINKS) == before, number
    assert number > 10


@pytest.fixture
def crane(world: World) -> Crane:
    return Crane(world)
