"""The key of the digests is made once and checked; hiding ids waits for threads."""

from pathlib import Path

import psycopg
import pytest

from mail_assets.mail.message.forgotten import Digests
from mail_assets.tables.partitions import locked
from mail_assets.tables.removals import (
    NO_KEY,
    ForgetKeyError,
    KeySource,
    find_key,
    read_digests,
    read_forgotten,
    settle_digests,
)
from mail_assets.tables.removed_messages import hide_ids
from mail_assets.tables.threads import CORPUS
from mail_assets_tests.world import DIGESTS, FORGET_KEY

GIVEN = KeySource(FORGET_KEY)


@pytest.fixture
def own_key(tmp_path: Path) -> KeySource:
    """The key file of a home with an embedded server."""
    return find_key(tmp_path, dsn="", given="")


def test_no_key_is_needed_before_mail_is_forgotten(migrated: psycopg.Connection) -> None:
    assert read_digests(migrated, NO_KEY) is None
    assert read_forgotten(migrated, NO_KEY).is_empty


def test_first_key_is_private_and_kept(migrated: psycopg.Connection, own_key: KeySource) -> None:
    made = settle_digests(migrated, own_key)
    assert own_key.file
    assert own_key.file.stat().st_mode & 0o777 == 0o600
    assert settle_digests(migrated, own_key) == made == read_digests(migrated, own_key)
    assert [path.name for path in own_key.file.parent.iterdir()] == ["forget.key"]


def test_shared_server_gets_no_key_unasked(migrated: psycopg.Connection, tmp_path: Path) -> None:
    with pytest.raises(ForgetKeyError, match="set MAIL_FORGET_KEY"):
        settle_digests(migrated, find_key(tmp_path, dsn="postgresql://somewhere", given=""))
    assert not [*tmp_path.iterdir()]
    assert read_digests(migrated, NO_KEY) is None


@pytest.mark.parametrize("may_create", [False, True])
def test_machine_without_the_key_is_refused(
    migrated: psycopg.Connection, tmp_path: Path, may_create: bool
) -> None:
    settle_digests(migrated, GIVEN)
    source = KeySource(file=tmp_path / "forget.key", may_create=may_create)
    for ask in (read_digests, settle_digests, read_forgotten):
        with pytest.raises(ForgetKeyError, match=r"no key .* mail; set MAIL_FORGET_KEY"):
            ask(migrated, source)
    assert not [*tmp_path.iterdir()]


def test_machine_with_another_key_is_refused(migrated: psycopg.Connection) -> None:
    settle_digests(migrated, GIVEN)
    with pytest.raises(ForgetKeyError, match="another key than") as refused:
        read_forgotten(migrated, KeySource("00" * 32))
    assert FORGET_KEY not in str(refused.value) + repr(GIVEN)


def test_unfit_key_file_is_refused(migrated: psycopg.Connection, own_key: KeySource) -> None:
    settle_digests(migrated, own_key)
    assert own_key.file
    own_key.file.chmod(0o640)
    with pytest.raises(ForgetKeyError, match="chmod 600"):
        read_digests(migrated, own_key)
    own_key.file.chmod(0o600)
    own_key.file.write_text("abc\n")
    with pytest.raises(ForgetKeyError, match="64 hexadecimal digits"):
        read_digests(migrated, own_key)


def test_database_does_not_hold_the_key(migrated: psycopg.Connection) -> None:
    settle_digests(migrated, GIVEN)
    [(check_value,)] = migrated.execute("select check_value from forget_keys").fetchall()
    assert check_value == DIGESTS.check_value != bytes.fromhex(FORGET_KEY)


def test_two_keys_give_two_digests() -> None:
    assert Digests(b"1").check_value != Digests(b"2").check_value


def test_ids_are_not_hidden_during_threads(migrated: psycopg.Connection, mail_dsn: str) -> None:
    with psycopg.connect(mail_dsn, autocommit=True) as step, locked(step, CORPUS):
        migrated.execute("set lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable), migrated.transaction():
            hide_ids(migrated, {"1@example.org": "forgotten-1"})
    with migrated.transaction():
        hide_ids(migrated, {"1@example.org": "forgotten-1"})
