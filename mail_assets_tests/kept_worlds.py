"""Homes and worlds that are filled once; each test gets a copy, which it may change."""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.databases import (
    END_SESSIONS,
    Databases,
    database_name,
    drop_database,
    new_database,
)
from mail_assets_tests.world import Hashing, World

#: Function that fills an empty world.
Fill = Callable[[World], object]


class KeptHome:
    """A filled home and its database; tests get copies, one after the other.

    A copy has its own database, and the folder of the original, because rows contain its path.
    Copying takes a fraction of the time of filling.
    """

    def __init__(self, cluster: Cluster, home: Path, dsn: str) -> None:
        self._cluster, self._home, self._database = cluster, home, database_name(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(END_SESSIONS)
        self._kept = home.with_name(f"{home.name}.kept")
        home.rename(self._kept)

    @contextmanager
    def copied(self, name: str = "") -> Iterator[str]:
        """Put a copy in the home's place; yield the DSN of its database, which can be named."""
        shutil.copytree(self._kept, self._home, symlinks=True)
        dsn = new_database(self._cluster, self._database, name)
        try:
            yield dsn
        finally:
            drop_database(self._cluster, dsn)
            shutil.rmtree(self._home)


class KeptWorlds:
    """The filled worlds of a session."""

    def __init__(self, cluster: Cluster, template: str, folder: Path) -> None:
        self._cluster, self._template, self._folder = cluster, template, folder
        self._kept: dict[Fill, tuple[World, KeptHome]] = {}

    @contextmanager
    def filled(self, fill: Fill) -> Iterator[World]:
        """Yield a world filled by `fill`."""
        if fill not in self._kept:
            self._kept[fill] = self._keep(fill)
        kept, home = self._kept[fill]
        with home.copied() as dsn:
            world = copy.copy(kept)
            world.dsn, world.encoder, world.said = dsn, Hashing(kept.home / "models"), []
            yield world

    def _keep(self, fill: Fill) -> tuple[World, KeptHome]:
        dsn = new_database(self._cluster, self._template)
        world = World(self._folder / f"world{len(self._kept)}", dsn)
        fill(world)
        return world, KeptHome(self._cluster, world.home, dsn)


def kept_world(fill: Fill) -> Callable[[KeptWorlds], Iterator[World]]:
    """Return a fixture: a world filled by `fill`, separate for each test."""

    @pytest.fixture
    def world(kept_worlds: KeptWorlds) -> Iterator[World]:
        with kept_worlds.filled(fill) as made:
            yield made

    return world


def standing_world(fill: Fill) -> Callable[[Databases, pytest.TempPathFactory], Iterator[World]]:
    """Return a fixture: a world filled by `fill`, which no test of the module changes."""

    @pytest.fixture(scope="module")
    def world(
        mail_databases: Databases, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[World]:
        made = World(tmp_path_factory.mktemp("standing"), mail_databases.take())
        fill(made)
        yield made
        mail_databases.give_back(made.dsn)

    return world
