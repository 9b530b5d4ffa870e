"""Worlds that are filled once: each test begins with one as it was filled, and may alter it."""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.databases import END_SESSIONS, database_name, drop_database, new_database
from mail_assets_tests.world import Hashing, World

#: Fills an empty world.
Fill = Callable[[World], object]


class Kept(NamedTuple):
    """A filled world, the copy of its folder, and the database to copy."""

    world: World
    folder: Path
    database: str


class KeptWorlds:
    """The filled worlds of a session.

    A test's world has the folder that it was filled in, which the rows name, and a database of its
    own. To copy both takes a fraction of the time of filling.
    """

    def __init__(self, cluster: Cluster, template: str, folder: Path) -> None:
        self._cluster, self._template, self._folder = cluster, template, folder
        self._kept: dict[Fill, Kept] = {}

    @contextmanager
    def filled(self, fill: Fill) -> Iterator[World]:
        """Yield a world as `fill` has left it."""
        kept = self._kept.get(fill) or self._keep(fill)
        home = kept.world.home
        shutil.copytree(kept.folder, home, symlinks=True)
        world = copy.copy(kept.world)
        world.dsn = new_database(self._cluster, kept.database)
        world.encoder, world.said = Hashing(home / "models"), []
        try:
            yield world
        finally:
            drop_database(self._cluster, world.dsn)
            shutil.rmtree(home)

    def _keep(self, fill: Fill) -> Kept:
        dsn = new_database(self._cluster, self._template)
        place = self._folder / str(len(self._kept))
        world = World(place / "home", dsn)
        fill(world)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(END_SESSIONS)
        world.home.rename(place / "kept")
        self._kept[fill] = Kept(world, place / "kept", database_name(dsn))
        return self._kept[fill]


def kept_world(fill: Fill) -> Callable[[KeptWorlds], Iterator[World]]:
    """Return a fixture: a world as `fill` has left it, of each test alone."""

    @pytest.fixture
    def world(kept_worlds: KeptWorlds) -> Iterator[World]:
        with kept_worlds.filled(fill) as made:
            yield made

    return world
