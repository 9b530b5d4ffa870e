"""The rows of removals: what must stay out, as keyed digests (see mail/message/forgotten.py).

[forget_keys] The key that digests of forgotten mail are made with: where it is kept, and which one is right.

The key is on the machines that load mail, the digests are in the database: who has only one of
them learns nothing. The row of forget_keys says which key is the right one, so that a machine with
another is refused and none is made by accident.

[cut_messages] The rows of cut_messages: what was cut out of the stored archives, for entries in removals.
"""

import datetime as dt
import os
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from tempfile import NamedTemporaryFile
from typing import Any, Literal, NamedTuple

import psycopg

from mail_assets.errors import MailAssetsError
from mail_assets.mail.message.forgotten import NOBODY, Digests, Forgotten, make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.hidden_ids import hide_ids

#: Bytes of a key, written as twice as many hexadecimal digits.
KEY_BYTES = 32

_REMEDY = "set MAIL_FORGET_KEY to the key of the machine that forgot first, or copy its forget.key"


class ForgetKeyError(MailAssetsError):
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
    """Key the digests of a former version, and rename the placeholders made of them.

    Threads keep their members; those that hold a placeholder are marked to be built again.
    """
    old = [x for (x,) in connection.execute(statement("forget_keys", "old_digests")).fetchall()]
    if not old:
        return
    new = [digests.of_hash(digest) for digest in old]
    changed = {"old": old, "new": new}
    connection.execute(statement("forget_keys", "rekey_removals"), changed)
    connection.execute(statement("forget_keys", "rekey_removed_messages"), changed)
    names = {"old": [*map(make_placeholder, old)], "new": [*map(make_placeholder, new)]}
    connection.execute(statement("forget_keys", "rename_aliases"), names)
    hide_ids(connection, dict(zip(names["old"], names["new"], strict=True)))


#: Stands behind the inputs of a month that must be loaded again: removals were taken back.
LOAD_AGAIN = ", with other removals since"

#: Stands there where a message was forgotten: the next load may learn other footers from the rest.
LESS = ", less what was forgotten since"


class Removal(NamedTuple):
    """An entry: what stays out, why, who removed it and when, and how many copies were left out."""

    digest: bytes
    kind: Literal["message", "sender"]
    reason: str
    removed_by: str
    removed_at: dt.datetime
    copies: int


def lock_for_load(connection: psycopg.Connection) -> None:
    """Keep removals from being added until the transaction ends, as other loads may too."""
    connection.execute(statement("removals", "lock_for_load"))


def lock_for_forgetting(
    connection: psycopg.Connection, report_wait: Callable[[], None] | None = None
) -> None:
    """Wait for the loads that run, and keep others out until the transaction ends.

    `report_wait` is called where there are such loads.
    """
    row = connection.execute(statement("removals", "try_lock_for_forgetting")).fetchone()
    if row and row[0]:
        return
    if report_wait:
        report_wait()
    connection.execute(statement("removals", "lock_for_forgetting"))


def key_old_digests(connection: psycopg.Connection, source: KeySource) -> None:
    """Give digests of a version that had no key one; call it outside a transaction.

    Raises:
        ForgetKeyError: this machine must not choose the key.
    """
    if has_old_digests(connection):
        with connection.transaction():
            lock_for_forgetting(connection)
            settle_digests(connection, source)


def read_forgotten(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return what must stay out.

    Raises:
        ForgetKeyError: this machine has not the key of its digests.
    """
    digests = read_digests(connection, source)
    if digests is None:
        return Forgotten()
    rows = connection.execute(statement("removals", "forgotten")).fetchall()
    ids = connection.execute(statement("removals", "forgotten_ids")).fetchall()
    return Forgotten(
        frozenset(digest for message, digest in rows if message),
        frozenset(digest for message, digest in rows if not message),
        frozenset(digest for (digest,) in ids),
        digests,
    )


def find_placeholder(
    connection: psycopg.Connection, source: KeySource, message_id: str
) -> str | None:
    """Return what stands for a forgotten message in threads, None where it is not forgotten.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    if not forgotten.hides_id(message_id):
        return None
    return make_placeholder(forgotten.digests.of_message(message_id))


def list_removals(connection: psycopg.Connection) -> list[Removal]:
    """Return the list of removals, the oldest first."""
    return [Removal(*row) for row in connection.execute(statement("removals", "list")).fetchall()]


class NewRemoval(NamedTuple):
    """An entry to be made; with `cut` archives are stored without it too."""

    digest: bytes
    kind: str
    reason: str
    removed_by: str
    cut: bool = False


def add_removal(connection: psycopg.Connection, removal: NewRemoval) -> None:
    """Add an entry; one that is there already stays as it is, but for `cut`."""
    connection.execute(statement("removals", "add"), removal._asdict())


def withdraw_removals(
    connection: psycopg.Connection, digests: Collection[bytes]
) -> tuple[int, list[ListMonth]]:
    """Delete entries; return how many, and the months that must be loaded again."""
    parameters = {"digests": [*digests]}
    ids = connection.execute(statement("removals", "hidden_digests"), parameters).fetchall()
    months = _mark_for_reload(connection, digests, {*digests, *(x for (x,) in ids)})
    months += connection.execute(statement("cut_messages", "fetch_again"), parameters).fetchall()
    connection.execute(statement("cut_messages", "delete"), parameters)
    connection.execute(statement("removals", "reveal_ids"), parameters)
    count = connection.execute(statement("removals", "delete"), parameters).rowcount
    return count, sorted({ListMonth(*row) for row in months})


def show_ids(connection: psycopg.Connection, digests: Collection[bytes]) -> None:
    """Hide ids no longer, in a transaction: a stored message has them too.

    The months that name them by a placeholder are loaded again.
    """
    parameters = {"digests": [*digests]}
    removed = connection.execute(statement("removals", "show_removed"), parameters).rowcount
    cut = connection.execute(statement("removals", "show_cut"), parameters).rowcount
    if removed or cut:
        _mark_for_reload(connection, (), digests)


def _mark_for_reload(
    connection: psycopg.Connection, removals: Collection[bytes], hidden: Collection[bytes]
) -> list[tuple[Any, ...]]:
    """Have the months loaded again that left something out for removals, or name hidden ids.

    Return their lists and months.
    """
    marked = {
        "digests": [*removals],
        "placeholders": sorted(map(make_placeholder, hidden)),
        "nobody": NOBODY.email,
        "load_again": LOAD_AGAIN,
    }
    months = connection.execute(statement("removals", "mark_for_reload"), marked).fetchall()
    connection.execute(statement("removals", "mark_rows"), marked)
    return months


class CutMessage(NamedTuple):
    """A message that the stored archive of a month no longer has.

    `message_digest` is None where a stored message has the id too, which stays visible.
    """

    removal: bytes
    message_digest: bytes | None
    key_prefix: str


def read_cut(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return what archives are stored without; `ids` are those of all that is forgotten.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    rows = connection.execute(statement("cut_messages", "forgotten")).fetchall()
    return forgotten._replace(
        messages=frozenset(digest for message, digest in rows if message),
        senders=frozenset(digest for message, digest in rows if not message),
    )


def record_cut(
    connection: psycopg.Connection, month: ListMonth, messages: Iterable[CutMessage]
) -> None:
    """Add messages that were cut out of the archive of a month."""
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("cut_messages", "record"),
            [{**month.columns, **message._asdict()} for message in messages],
        )


def drop_reused(connection: psycopg.Connection, month: ListMonth) -> None:
    """Drop what a month has lost whose keys are those of a message that is stored in its place."""
    connection.execute(statement("cut_messages", "drop_reused"), month.columns)


def uncut_months(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive holds what is to be cut out of it.

    Of months of which something was cut out before for some `removals`, or that have lost it, any
    file may hold that again: one of before was restored, say.
    """
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "uncut_months"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]


def months_left_out(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months that leave something out for some removals."""
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "months_left_out"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]


def months_holding(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive holds what some removals keep out."""
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "months_holding"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]
