"""The key of the digests: made once, kept out of the database, and no other taken for it."""

import hashlib
from pathlib import Path

import psycopg
import pytest

from mail_assets.mail.message.forgotten import Digests, stand_in
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.reading.conversations import read_thread
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.outcome import ListDefaults
from mail_assets.tables.hidden_ids import hide_ids
from mail_assets.tables.removals import (
    NO_KEY,
    ForgetKeyError,
    KeySource,
    NewRemoval,
    add_removal,
    find_key,
    key_old_digests,
    read_digests,
    read_forgotten,
    settle_digests,
)
from mail_assets.tables.removed_messages import (
    RemovedMessage,
    delete_copies,
    find_copies,
    record_removed,
)
from mail_assets.workspace import Workspace
from mail_assets_tests.world import APRIL, DIGESTS, FORGET_KEY, HARBOR, MARCH, World, mail

GIVEN = KeySource(FORGET_KEY)


@pytest.fixture
def own_key(tmp_path: Path) -> KeySource:
    """The key file beside an embedded server."""
    return find_key(tmp_path, dsn="", given="")


def test_a_database_in_which_nothing_was_forgotten_needs_no_key(
    migrated: psycopg.Connection,
) -> None:
    assert read_digests(migrated, NO_KEY) is None
    key_old_digests(migrated, NO_KEY)
    assert read_forgotten(migrated, NO_KEY).is_empty


def test_the_first_key_is_made_for_this_user_alone_and_kept(
    migrated: psycopg.Connection, own_key: KeySource
) -> None:
    made = settle_digests(migrated, own_key)
    assert own_key.file
    assert own_key.file.stat().st_mode & 0o777 == 0o600
    assert settle_digests(migrated, own_key) == made == read_digests(migrated, own_key)
    assert [path.name for path in own_key.file.parent.iterdir()] == ["forget.key"]


def test_a_server_that_others_may_use_gets_no_key_by_accident(
    migrated: psycopg.Connection, tmp_path: Path
) -> None:
    with pytest.raises(ForgetKeyError, match="set MAIL_FORGET_KEY"):
        settle_digests(migrated, find_key(tmp_path, dsn="postgresql://somewhere", given=""))
    assert not [*tmp_path.iterdir()]
    assert read_digests(migrated, NO_KEY) is None


@pytest.mark.parametrize("may_create", [False, True])
def test_a_machine_without_the_key_is_refused_and_makes_no_other(
    migrated: psycopg.Connection, tmp_path: Path, may_create: bool
) -> None:
    settle_digests(migrated, GIVEN)
    source = KeySource(file=tmp_path / "forget.key", may_create=may_create)
    for ask in (read_digests, settle_digests, read_forgotten):
        with pytest.raises(ForgetKeyError, match=r"missing here; set MAIL_FORGET_KEY"):
            ask(migrated, source)
    assert not [*tmp_path.iterdir()]


def test_a_machine_with_another_key_is_refused(migrated: psycopg.Connection) -> None:
    settle_digests(migrated, GIVEN)
    with pytest.raises(ForgetKeyError, match="not the one") as refused:
        read_forgotten(migrated, KeySource("00" * 32))
    assert FORGET_KEY not in str(refused.value) + repr(GIVEN)


def test_a_key_file_that_others_can_read_or_that_is_damaged_is_refused(
    migrated: psycopg.Connection, own_key: KeySource
) -> None:
    settle_digests(migrated, own_key)
    assert own_key.file
    own_key.file.chmod(0o640)
    with pytest.raises(ForgetKeyError, match="chmod 600"):
        read_digests(migrated, own_key)
    own_key.file.chmod(0o600)
    own_key.file.write_text("abc\n")
    with pytest.raises(ForgetKeyError, match="64 hexadecimal digits"):
        read_digests(migrated, own_key)


def test_the_database_holds_a_check_value_and_not_the_key(migrated: psycopg.Connection) -> None:
    settle_digests(migrated, GIVEN)
    [(check_value,)] = migrated.execute("select check_value from forget_keys").fetchall()
    assert check_value == DIGESTS.check_value != bytes.fromhex(FORGET_KEY)


def unkeyed(kind: str, value: str) -> bytes:
    """Return the digest of a version that had no key."""
    return hashlib.sha256(f"{kind} {value}".encode()).digest()


@pytest.fixture
def world(tmp_path: Path, mail_dsn: str) -> World:
    return World(tmp_path, mail_dsn)


@pytest.fixture
def old_world(world: World) -> World:
    """A message and a leaf forgotten by a version that had no key."""
    world.archive(MARCH, mail("a"), mail("secret"), mail("leaf", references="<a@example.org>"))
    world.archive(
        APRIL,
        mail("answer", references="<a@example.org> <secret@example.org>"),
        mail("reply", references="<answer@example.org>"),
    )
    for month in (MARCH, APRIL):
        world.chain(month, last="messages")
    world.threads()
    forget_without_key(world, "secret@example.org", "leaf@example.org")
    world.threads()
    return world


def forget_without_key(world: World, *message_ids: str) -> None:
    """Leave what that version left: unkeyed digests, and stand-ins made of them."""
    with world.connect() as connection, connection.transaction():
        copies = find_copies(connection, message_ids, [])
        delete_copies(connection, copies)
        for copy in copies:
            digest = unkeyed("message", copy.message_id)
            entry = NewRemoval(digest, "message", "asked to", "the postmaster")
            add_removal(connection, entry)
            removed = RemovedMessage(copy.ordinal, digest, digest, copy.key_prefix)
            record_removed(connection, copy.month, [removed])
        hide_ids(connection, {x: stand_in(unkeyed("message", x)) for x in message_ids})


def members(world: World) -> set[tuple[str, int]]:
    """Return who stands where, without the stand-ins."""
    shown = "not message_id like '%@forgotten.invalid'"
    return {*world.rows("threads", "message_id, depth, position", shown)}


def test_digests_of_a_former_version_are_keyed_in_place_and_threads_stay(old_world: World) -> None:
    before = members(old_world)
    old = {unkeyed("message", f"{name}@example.org") for name in ("secret", "leaf")}
    assert {bytes(x) for (x,) in old_world.rows("removals", "digest")} == old
    old_world.archive(MARCH, mail("a"), mail("secret"), mail("leaf"), mail("new"), at=1)
    old_world.chain(MARCH, last="messages")
    old_world.threads()

    assert {one for one in members(old_world) if one[0] != "new@example.org"} == before
    new = {DIGESTS.of_hash(digest) for digest in old}
    assert {bytes(x) for (x,) in old_world.rows("removals", "digest")} == new
    for column in ("removal", "message_digest"):
        assert {bytes(x) for (x,) in old_world.rows("removed_messages", column)} == new
    for table in ("messages", "threads", "thread_aliases"):
        text = repr(old_world.rows(table))
        assert not [digest for digest in old if stand_in(digest) in text]
    with old_world.connect() as connection:
        for name in ("secret", "leaf"):
            hidden = stand_in(DIGESTS.of_message(f"{name}@example.org"))
            found = read_thread(connection, hidden)
            assert found
            assert "answer@example.org" in {post.message_id for post in found.posts}


def test_a_machine_that_may_not_choose_the_key_loads_nothing(old_world: World) -> None:
    old_world.archive(MARCH, mail("a"), mail("secret"), mail("new"), at=1)
    old_world.chain(MARCH, last="archives")
    database = Database(old_world.home, old_world.dsn)
    before = old_world.rows("messages")
    with database.connect("test") as connection:
        workspace = Workspace(connection, old_world.store, old_world.said.append)
        with pytest.raises(ForgetKeyError, match="need a key"):
            load_messages(workspace, ListMonth(HARBOR, MARCH), ListDefaults("english"))
    assert old_world.rows("messages") == before


def test_two_keys_give_two_digests() -> None:
    assert Digests(b"1").check_value != Digests(b"2").check_value
