"""Pruning deletes unused files, and nothing else."""

import datetime as dt
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.defs.pruning import prune_archives, prune_embeddings
from mail_assets.forgetting.clean import clean_files
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, part_key, parts_prefix, write_embeddings
from mail_assets.store.open import FolderStore
from mail_assets.tables.indexes import NewIndex, record_index
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import HARBOR, MARCH, World, mail

NOW = dt.datetime.now(dt.UTC)
BEFORE = NOW - dt.timedelta(days=90)

Age = Callable[[str, int], None]


def fill_world(made: World) -> None:
    """A month with embeddings of the configured encoder."""
    made.load(mail("a"), mail("b"), mail("c"), last="embeddings")


world = kept_world(fill_world)


@pytest.fixture
def age(world: World) -> Age:
    """Set the write time of a file to some days ago."""

    def age(key: str, days: int) -> None:
        then = (NOW - dt.timedelta(days=days)).timestamp()
        os.utime(world.home / "store" / key, (then, then))

    return age


def prune(world: World, *, dry_run: bool = False) -> dict[str, int]:
    with world.workspace() as workspace:
        found = prune_embeddings(workspace, world.encoder.fingerprint, BEFORE, dry_run=dry_run)
    assert all((one.things > 0) is bool(one.bytes) for one in found)
    return {one.what.split()[-1]: one.things for one in found}


def key_of(world: World, fingerprint: str) -> str:
    return file_key(ListMonth(HARBOR, MARCH), fingerprint)


def encode_otherwise(world: World, fingerprint: str, recorded: bool) -> str:
    """Encode the month with another encoder, with or without index; return the file's key."""
    configured, world.encoder.fingerprint = world.encoder.fingerprint, fingerprint
    world.embeddings()
    world.encoder.fingerprint = configured
    if recorded:
        with world.connect() as connection:
            record_index(connection, world.bucket, NewIndex("other", "x", "int8", fingerprint))
    return key_of(world, fingerprint)


def test_old_files_of_encoders_without_index_are_deleted(world: World, age: Age) -> None:
    unused = encode_otherwise(world, "unused", recorded=False)
    used = encode_otherwise(world, "used", recorded=True)
    own = key_of(world, world.encoder.fingerprint)
    for key in (used, own):
        age(key, 400)
    age(unused, 89)
    assert prune(world)["encoders"] == 0
    age(unused, 91)
    assert prune(world, dry_run=True)["encoders"] == 1
    assert world.store.exists(unused)
    assert prune(world)["encoders"] == 1
    assert not world.store.exists(unused)
    assert world.store.exists(used)
    assert world.store.exists(own)
    assert not any(prune(world).values())


def test_old_unfinished_parts_are_deleted(world: World, age: Age) -> None:
    month = ListMonth(HARBOR, MARCH)
    parts = parts_prefix(month, world.encoder.fingerprint)
    young, old = part_key(parts, b"\x01" * 32), part_key(parts, b"\x02" * 32)
    for key in (young, old):
        world.store.put_bytes(key, b"part")
    age(old, 91)
    assert prune(world)["embeddings"] == 1
    assert (world.store.exists(old), world.store.exists(young)) == (False, True)


class Swept(FolderStore):
    """A store in which a finishing run deletes each part at a given moment."""

    def __init__(self, root: Path, moment: str) -> None:
        super().__init__(root)
        self.moment = moment

    def keys(self, prefix: str = "") -> Iterator[str]:
        for key in [*super().keys(prefix)]:
            self._sweep("listed", key)
            yield key

    def modified(self, key: str) -> dt.datetime:
        time = super().modified(key)
        self._sweep("looked at", key)
        return time

    @contextmanager
    def fetch(self, key: str) -> Iterator[Path]:
        with super().fetch(key) as path:
            self._sweep("fetched", key)
            yield path

    def _sweep(self, moment: str, key: str) -> None:
        if moment == self.moment and ".parts/" in key:
            self.delete(key)


@pytest.mark.parametrize("moment", ["listed", "looked at", "fetched"])
def test_parts_that_a_run_deletes_meanwhile_are_no_error(
    world: World, age: Age, moment: str
) -> None:
    month = ListMonth(HARBOR, MARCH)
    key = part_key(parts_prefix(month, world.encoder.fingerprint), b"\x01" * 32)
    write_embeddings(world.store, key, {b"\x01" * 32: [1.0]}, "print")
    age(key, 400)
    with world.workspace() as workspace:
        racing = replace(workspace, store=Swept(world.home / "store", moment))
        assert clean_files(racing, []) == 0
        write_embeddings(world.store, key, {b"\x01" * 32: [1.0]}, "print")
        age(key, 400)
        found = prune_embeddings(racing, world.encoder.fingerprint, BEFORE)
    assert sum(one.things for one in found) == (moment == "fetched")


def test_vectors_of_vanished_texts_leave_files_of_encoders(world: World, age: Age) -> None:
    key = encode_otherwise(world, "used", recorded=True)
    before = world.holds()["files"]
    age(key, 100)
    assert prune(world)["gone"] == 0
    world.archive(MARCH, mail("a"), mail("b"), at=60)
    world.archives(allow_loss=True)
    for step in ("messages", "chunks", "embeddings"):
        getattr(world, step)()
    age(key, 100)
    assert prune(world, dry_run=True)["gone"] == 1
    assert prune(world)["gone"] == 1
    assert prune(world)["gone"] == 0
    left, own = (
        world.home / "store" / name for name in (key, key_of(world, "hashing-encoder-of-tests"))
    )
    assert left.stat().st_size < len(before[key])  # type: ignore[index]
    assert own.exists()


def test_former_archives_are_deleted_after_their_days(world: World) -> None:
    world.keep_days = 1
    world.archive(MARCH, mail("a"), mail("b"), mail("d"), at=60)
    world.archives(allow_loss=True)
    world.messages()
    [(key,)] = world.rows("former_archives", "object_key")
    with world.workspace() as workspace:
        assert prune_archives(workspace).things == 0
        workspace.connection.execute(
            "update former_archives set kept_until = now() - '1 s'::interval"
        )
        found = prune_archives(workspace, dry_run=True)
        assert (found.things, found.bytes) == (1, world.store.size(key))
        assert prune_archives(workspace) == found
    assert not world.store.exists(key)
    assert world.rows("former_archives") == []
