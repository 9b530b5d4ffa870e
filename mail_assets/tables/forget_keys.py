"""The key that digests of forgotten mail are made with: where it is kept, and which one is right.

The key is on the machines that load mail, the digests are in the database: who has only one of
them learns nothing. The row of forget_keys says which key is the right one, so that a machine with
another is refused and none is made by accident.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from tempfile import NamedTemporaryFile

import psycopg

from mail_assets.mail.message.forgotten import Digests, stand_in
from mail_assets.postgres.statements import statement
from mail_assets.tables.hidden_ids import hide_ids

#: Bytes of a key, written as twice as many hexadecimal digits.
KEY_BYTES = 32

_REMEDY = "set MAIL_FORGET_KEY to the key of the machine that forgot first, or copy its forget.key"


class ForgetKeyError(RuntimeError):
    """The key of the digests of forgotten mail is missing here, or is another one."""


@dataclass(frozen=True)
class KeySource:
    """Where this machine has the key: `given` (MAIL_FORGET_KEY, hexadecimal), else in a file.

    `may_create` is true where no other machine can have made one: with the embedded server.
    """

    given: str = field(default="", repr=False)
    file: Path | None = None
    may_create: bool = False

    def read(self) -> bytes | None:
        """Return the key, None where this machine has none.

        Raises:
            ForgetKeyError: the file holds no key, or others can read it.
        """
        if self.given:
            return parse_key(self.given)
        if self.file is None or not self.file.exists():
            return None
        if self.file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ForgetKeyError(f"{self.file}: others can read it; run chmod 600 on it")
        try:
            return parse_key(self.file.read_text(encoding="ascii", errors="replace").strip())
        except ValueError as error:
            raise ForgetKeyError(f"{self.file}: {error}") from None

    def create(self) -> bytes:
        """Make the first key of an installation, and return it.

        Raises:
            ForgetKeyError: other machines may use this database, which need the same key.
        """
        if self.file is None or not self.may_create:
            raise ForgetKeyError(
                "the digests of forgotten mail need a key, the same on every machine that uses "
                "this database: set MAIL_FORGET_KEY, for example to the output of "
                "`openssl rand -hex 32`, and keep it"
            )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=self.file.parent, encoding="ascii") as whole:  # mode 0600
            whole.write(f"{token_bytes(KEY_BYTES).hex()}\n")
            whole.flush()
            os.fsync(whole.fileno())
            with suppress(FileExistsError):  # another process was first: its key counts
                os.link(whole.name, self.file)
        _sync(self.file.parent)  # the database is about to rely on it
        key = self.read()
        assert key is not None
        return key


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: Of a program that forgets nothing: where something was forgotten it is refused.
NO_KEY = KeySource()


def find_key(home: Path, dsn: str, given: str) -> KeySource:
    """Return where a machine has its key; only beside the embedded server may it make one."""
    return KeySource(given, home / "forget.key", may_create=not dsn)


def parse_key(text: str) -> bytes:
    """Return the bytes of a key in hexadecimal.

    Raises:
        ValueError: it is none; the message does not repeat it.
    """
    wrong = f"must be {2 * KEY_BYTES} hexadecimal digits, as `openssl rand -hex {KEY_BYTES}` prints"
    try:
        key = bytes.fromhex(text)
    except ValueError:
        raise ValueError(wrong) from None
    if len(key) != KEY_BYTES:
        raise ValueError(wrong)
    return key


def read_digests(connection: psycopg.Connection, source: KeySource) -> Digests | None:
    """Return what makes the digests of this database, None while it has no key.

    Raises:
        ForgetKeyError: this machine has not the key that they were made with.
    """
    row = connection.execute(statement("forget_keys", "read")).fetchone()
    if row is None:
        return None
    key = source.read()
    if key is None:
        raise ForgetKeyError(f"the key of the digests of forgotten mail is missing here; {_REMEDY}")
    digests = Digests(key)
    if digests.check_value != row[0]:
        raise ForgetKeyError(
            f"the key here is not the one that this database's digests were made with; {_REMEDY}"
        )
    return digests


def settle_digests(connection: psycopg.Connection, source: KeySource) -> Digests:
    """Return what makes the digests of this database; the first time, choose its key.

    Call it in a transaction that holds the lock for forgetting.

    Raises:
        ForgetKeyError: this machine has not the key, or must not make the first one.
    """
    digests = read_digests(connection, source)
    if digests is None:
        digests = Digests(source.read() or source.create())
        parameters = {"check_value": digests.check_value}
        connection.execute(statement("forget_keys", "write"), parameters)
        _rekey(connection, digests)
    return digests


def has_old_digests(connection: psycopg.Connection) -> bool:
    """Return whether digests are those of a version that had no key."""
    if connection.execute(statement("forget_keys", "read")).fetchone():
        return False
    row = connection.execute(statement("forget_keys", "has_removals")).fetchone()
    return bool(row and row[0])


def _rekey(connection: psycopg.Connection, digests: Digests) -> None:
    """Key the digests of a former version, and rename the stand-ins made of them.

    Threads keep their members; those that hold a stand-in are marked to be built again.
    """
    old = [x for (x,) in connection.execute(statement("forget_keys", "old_digests")).fetchall()]
    if not old:
        return
    new = [digests.of_hash(digest) for digest in old]
    changed = {"old": old, "new": new}
    connection.execute(statement("forget_keys", "rekey_removals"), changed)
    connection.execute(statement("forget_keys", "rekey_removed_messages"), changed)
    names = {"old": [*map(stand_in, old)], "new": [*map(stand_in, new)]}
    connection.execute(statement("forget_keys", "rename_aliases"), names)
    hide_ids(connection, dict(zip(names["old"], names["new"], strict=True)))
