"""`mail-assets backup` and `restore` recover a home that is lost with its sources."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.cli.conftest import Home, assert_fails
from mail_assets_tests.databases import drop_database, new_database
from mail_assets_tests.world import FORGET_KEY, World, mail


def search(home: Home) -> list[str]:
    [answer] = home.lines("search", "--json", "ballenas")
    return [hit["message_id"] for hit in json.loads(answer)["hits"]]


class Lost(NamedTuple):
    """A home whose folder and database are lost; has its lists and former output."""

    home: Home
    folder: Path
    lists: str
    found: list[str]
    listed: list[str]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, model_cache: Path) -> Lost:
    """A lost home with two backups, `records` and `whole`, next to it."""
    folder, database = tmp_path_factory.mktemp("lost") / "home", new_database(cluster)
    folder.mkdir()
    home = Home(folder, database, model_cache)
    home.environ["MAIL_FORGET_KEY"] = FORGET_KEY
    home.lines("backfill", "--fast")
    home.lines("forget", "stems@example.es", "--reason", "asked", "--by", "test")
    lists, found = (folder / "lists.toml").read_text(), search(home)
    assert "twice@example.es" in found
    made = Lost(home, folder, lists, found, home.lines("list", "harbor-es"))
    for name, options in (("records", ()), ("whole", ("--all",))):
        backup = str(folder.parent / name)
        assert " 1 forgotten entry, " in home.lines("backup", backup, *options)[0]
    shutil.rmtree(folder)
    drop_database(cluster, database)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", ["records", "whole"])
def test_lost_home_is_restored_and_searched_without_sources(
    lost: Lost, cluster: Cluster, name: str
) -> None:
    home, backup = lost.home, str(lost.folder.parent / name)
    lost.folder.mkdir()
    (lost.folder / "lists.toml").write_text(lost.lists)
    database = new_database(cluster)
    home.move(database)
    try:
        assert home.lines("restore", backup)[0].startswith("restored the backup of ")
        home.lines("backfill", "--fast", "--stored")
        assert search(home) == lost.found
        assert home.lines("list", "harbor-es") == lost.listed
        refused = home.run("restore", backup)
        assert_fails(refused, 1, "this database has archives already")
        assert home.lines("restore", "--only-forgotten", backup) == [
            "0 new entries of what was forgotten"
        ]
    finally:
        drop_database(cluster, database)
        shutil.rmtree(lost.folder)


def test_lost_former_archive_is_noted_and_fails_no_backup(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    world = World(tmp_path / "home", home_dsn)
    world.keep_days = 30
    for at, names in enumerate((("a", "b"), ("a",))):
        world.load(*map(mail, names), at=at)
    [(former,)] = world.rows("former_archives", "object_key")
    [(current,)] = world.rows("mbox_archives", "object_key")
    home = Home(world.home, home_dsn, model_cache)
    world.store.delete(former)
    taken = home.run("backup", str(tmp_path / "one"))
    assert (taken.exit_code, "backfill" in taken.stderr) == (0, False)
    assert f"the store has lost {former}, a former archive: " in taken.stderr
    world.store.delete(current)
    failed = home.run("backup", str(tmp_path / "two"))
    assert failed.exit_code == 1
    assert f"the store has lost {current}: `mail-assets backfill`" in failed.stderr


def test_restore_needs_a_folder_with_a_backup(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, home_dsn, model_cache)
    for name in ("none", "tricks"):
        result = home.run("restore", str(tmp_path / name))
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"{name} has no complete backup" in result.stderr


@pytest.mark.parametrize("place", ["home", "store"])
def test_backup_into_the_home_or_store_is_refused(
    tmp_path: Path, home_dsn: str, model_cache: Path, place: str
) -> None:
    (tmp_path / "home").mkdir()
    home = Home(tmp_path / "home", home_dsn, model_cache)
    folder = str(tmp_path / place / "backup")
    result = home.run("backup", folder, MAIL_STORE=str(tmp_path / "store"))
    assert_fails(result, 1, "choose another folder")
    assert not (tmp_path / place / "backup").exists()
