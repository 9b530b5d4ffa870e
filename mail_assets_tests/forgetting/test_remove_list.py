"""A removed list is in no table, index and file; a stopped removal continues."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.forgetting import remove_list as removing
from mail_assets.forgetting.remove_list import is_stored, remove_list
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, Killed, World, mail


def fill_world(world: World) -> None:
    """PIER is to be removed; a message and a thread are in both lists."""
    world.load(
        mail("root", "Does the quokka swim in the harbor? It would help the survey a lot."),
        mail("cross", "The quokka was seen on both lists, swimming in the harbor."),
        mail("answer", "It does, and it dives.", references="<middle@example.org>"),
        last="vectors",
    )
    world.load(
        mail("middle", "Perhaps it dives; we decided to look.", references="<root@example.org>"),
        mail("cross", "The quokka was seen on both lists, swimming in the harbor."),
        mail("leaf", "A leaf.", references="<answer@example.org>"),
        list_name=PIER,
        last="vectors",
    )
    world.load(
        mail("april", "Alone in April.", date="Mon, 08 Apr 2024 09:00:00 +0000"),
        month=APRIL,
        list_name=PIER,
        last="vectors",
    )
    world.threads()
    world.summaries()


world = kept_world(fill_world)


def list_rows(world: World, name: str) -> dict[str, int]:
    """Return the tables with rows of a list, and their numbers."""
    with world.connect() as connection:
        tables = connection.execute(
            "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid"
            " where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'"
            " and a.attname = 'list' and not a.attisdropped"
        ).fetchall()
        found = {
            table: connection.execute(
                f"select count(*) from {table} where list = %s".encode(), (name,)
            ).fetchone()
            for (table,) in tables
        }
    assert len(found) > 12
    return {table: row[0] for table, row in found.items() if row and row[0]}


def remove(world: World) -> Any:
    with world.workspace() as workspace:
        return remove_list(workspace, PIER, world.open_index)


def assert_gone(world: World) -> None:
    assert list_rows(world, PIER) == {}
    assert [key for key in world.store.keys("") if f"/{PIER}/" in key] == []
    with world.workspace() as workspace:
        assert not is_stored(workspace, PIER)
    ids = [row[0] for row in world.rows("threads", "message_id")]
    assert ids == ["answer@example.org", "cross@example.org", "middle@example.org",
                   "root@example.org"]  # fmt: skip
    assert world.rows("threads", "message_id", "is_ghost") == [("middle@example.org",)]
    assert world.rows("thread_aliases") == []


def test_removed_list_leaves_no_trace(world: World, tmp_path: Path) -> None:
    removed = remove(world)
    assert (removed.months, removed.messages, removed.failed) == (2, 4, {})
    assert removed.keys["words"] == 4
    assert_gone(world)
    world.summaries()
    kept = world.holds()
    world.chain()
    world.threads()
    assert world.holds() == kept, "nothing of the other list was touched"


@pytest.mark.parametrize("at", range(1, 12))
def test_killed_removal_continues(world: World, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with kill_at(at, monkeypatch) as calls, pytest.raises(Killed):
        remove(world)
    assert len(calls) == at
    remove(world)
    assert_gone(world)


@contextmanager
def kill_at(at: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    calls: list[str] = []

    def killing(name: str, step: Any) -> Any:
        def run(*args: Any) -> Any:
            calls.append(name)
            if len(calls) == at:
                raise Killed
            return step(*args)

        return run

    with monkeypatch.context() as patch:
        steps = ("delete_month", "_delete_keys", "_delete_files", "delete_states", "build_threads")
        for name in (*steps, "delete_list"):
            patch.setattr(removing, name, killing(name, getattr(removing, name)))
        yield calls


def test_index_out_of_reach_is_named_and_finished(world: World) -> None:

    def refuse(name: str) -> Any:
        raise ValueError("no such bucket here")

    with world.workspace() as workspace:
        removed = remove_list(workspace, PIER, refuse)
    assert [*removed.failed.values()] == ["no such bucket here"]
    assert {*list_rows(world, PIER)} == {"lists", "vectors", "partitions"}
    assert remove(world).failed == {}
    assert_gone(world)


def test_command_asks_and_refuses_lists(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = world.home / "lists.toml"
    both = "".join(f'[{name}]\nsource = "{world.folder(name)}"\n' for name in (HARBOR, PIER))
    lists.write_text(both)
    for name, value in {
        "MAIL_HOME": str(world.home),
        "MAIL_LISTS": str(lists),
        "MAIL_PG_DSN": world.dsn,
        "MAIL_STORE": str(world.home / "store"),
        "MAIL_WORDS": world.words_url,
        "MAIL_VECTORS": world.bucket,
    }.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, given: str = "") -> tuple[int, str]:
        result = CliRunner().invoke(main, ["list", *arguments], input=given)
        return result.exit_code, result.output

    code, said = run("remove", PIER, "--yes")
    assert (code, said.count("\n")) == (1, 1)
    assert "take its table out first" in said
    lists.write_text(both.partition(f"[{PIER}]")[0])
    code, said = run("remove", PIER, given="n\n")
    assert (code, "Delete list pier, 4 messages in 2 months, for good?" in said) == (1, True)
    assert list_rows(world, PIER)
    code, said = run("remove", "peir")
    assert (code, "did you mean pier?" in said) == (1, True)
    code, said = run("remove", PIER, "--yes")
    assert (code, "removed: 4 messages in 2 months" in said) == (0, True), said
    assert_gone(world)
    code, said = run("remove", PIER, "--yes")
    assert (code, "nothing of a list pier is stored" in said) == (1, True)
    code, said = run(HARBOR, "--json")
    assert [json.loads(line)["month"] for line in said.splitlines()] == [MARCH] * 3
