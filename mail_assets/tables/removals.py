"""The list of removals: keyed digests of mail that must stay out, and the key of the digests.

mail/message/forgotten.py makes the digests. The key is on the machines that load mail, the digests
are in the database: one without the other reveals nothing. The row of forget_keys identifies the
right key, so that a machine with another key is refused.

cut_messages has the messages that stored archives no longer contain, because they were cut out for
an entry of the list, or because the source lost them.
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
from mail_assets.files import make_private_folder, sync_folder
from mail_assets.mail.message.forgotten import NOBODY, Digests, Forgotten
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_as, read_column, statement

#: Bytes of a key; it is written in hexadecimal.
KEY_BYTES = 32

_REMEDY = "set MAIL_FORGET_KEY to the key of the machine that forgot first, or copy its forget.key"


class ForgetKeyError(MailAssetsError):
    """The key of the digests of forgotten mail is missing on this machine, or is wrong."""


@dataclass(frozen=True)
class KeySource:
    """The source of the key: `given` (MAIL_FORGET_KEY, hexadecimal), else a file.

    `may_create` is true with the embedded server, where no other machine can have made a key.
    """

    given: str = field(default="", repr=False)
    file: Path | None = None
    may_create: bool = False

    def read(self) -> bytes | None:
        """Return the key, None if this machine has none.

        Raises:
            ForgetKeyError: the file contains no key, or other users can read it.
        """
        if self.given:
            return parse_key(self.given)
        if self.file is None or not self.file.exists():
            return None
        if self.file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ForgetKeyError(f"{self.file}: other users can read it; run chmod 600 on it")
        try:
            return parse_key(self.file.read_text(encoding="ascii", errors="replace").strip())
        except ValueError as error:
            raise ForgetKeyError(f"{self.file}: {error}") from None

    def create(self) -> bytes:
        """Make and return the first key of an installation.

        Raises:
            ForgetKeyError: other machines may use this database and need the same key.
        """
        if self.file is None or not self.may_create:
            raise ForgetKeyError(
                "the digests of forgotten mail need a key, the same on every machine that uses "
                "this database: set MAIL_FORGET_KEY, for example to the output of "
                "`openssl rand -hex 32`, and keep it"
            )
        make_private_folder(self.file.parent)
        with NamedTemporaryFile("w", dir=self.file.parent, encoding="ascii") as whole:  # mode 0600
            whole.write(f"{token_bytes(KEY_BYTES).hex()}\n")
            whole.flush()
            os.fsync(whole.fileno())
            with suppress(FileExistsError):  # then another process was first, and its key is used
                os.link(whole.name, self.file)
        sync_folder(self.file.parent)  # before the database relies on it
        key = self.read()
        assert key is not None
        return key


#: For programs that forget nothing; a database with forgotten mail needs a key.
NO_KEY = KeySource()


def find_key(home: Path, dsn: str, given: str) -> KeySource:
    """Return the source of this machine's key; only the embedded server may create one."""
    return KeySource(given, home / "forget.key", may_create=not dsn)


def parse_key(text: str) -> bytes:
    """Return the bytes of a key in hexadecimal.

    Raises:
        ValueError: the text is not a key; the message does not repeat the text.
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
    """Return the maker of this database's digests, None while the database has no key.

    Raises:
        ForgetKeyError: this machine does not have the right key.
    """
    row = connection.execute(statement("removals", "read_check_value")).fetchone()
    if row is None:
        return None
    key = source.read()
    if key is None:
        raise ForgetKeyError(
            f"this machine has no key for the digests of forgotten mail; {_REMEDY}"
        )
    digests = Digests(key)
    if digests.check_value != row[0]:
        raise ForgetKeyError(
            f"this machine has another key than the digests of this database; {_REMEDY}"
        )
    return digests


def settle_digests(connection: psycopg.Connection, source: KeySource) -> Digests:
    """Return the maker of this database's digests; the first time, choose the key.

    Call it in a transaction that holds the lock for forgetting.

    Raises:
        ForgetKeyError: this machine does not have the key, or must not create the first one.
    """
    digests = read_digests(connection, source)
    if digests is None:
        digests = Digests(source.read() or source.create())
        parameters = {"check_value": digests.check_value}
        connection.execute(statement("removals", "write_check_value"), parameters)
    return digests


#: Suffix of the inputs of a month that must be loaded again because removals were withdrawn.
LOAD_AGAIN = ", with other removals since"

#: Suffix of the inputs of a month that lost a forgotten message: the next load may learn other
#: footers from the rest.
LESS = ", less what was forgotten since"


class Removal(NamedTuple):
    """An entry of the list; `copies` is the number of copies that months omit because of it."""

    digest: bytes
    kind: Literal["message", "sender"]
    reason: str
    removed_by: str
    removed_at: dt.datetime
    copies: int


def lock_for_load(connection: psycopg.Connection) -> None:
    """Keep removals from being added until the transaction ends; loads share this lock."""
    connection.execute(statement("removals", "lock_for_load"))


def lock_for_forgetting(
    connection: psycopg.Connection, report_wait: Callable[[], None] | None = None
) -> None:
    """Wait for running loads (`report_wait`), and keep new ones out until the transaction ends."""
    row = connection.execute(statement("removals", "try_lock_for_forgetting")).fetchone()
    if row and row[0]:
        return
    if report_wait:
        report_wait()
    connection.execute(statement("removals", "lock_for_forgetting"))


def read_forgotten(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return the digests of all mail that must stay out.

    Raises:
        ForgetKeyError: this machine does not have the key of the digests.
    """
    digests = read_digests(connection, source)
    if digests is None:
        return Forgotten()
    rows = connection.execute(statement("removals", "forgotten")).fetchall()
    return Forgotten(
        frozenset(digest for message, digest in rows if message),
        frozenset(digest for message, digest in rows if not message),
        frozenset(read_column(connection, statement("removals", "forgotten_ids"))),
        digests,
    )


def find_placeholder(
    connection: psycopg.Connection, source: KeySource, message_id: str
) -> str | None:
    """Return the placeholder of a forgotten message in threads, None if it is not forgotten.

    Raises:
        ForgetKeyError: this machine does not have the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    if not forgotten.hides_id(message_id):
        return None
    return make_placeholder(forgotten.digests.of_message(message_id))


def list_removals(connection: psycopg.Connection) -> list[Removal]:
    """Return the list of removals, oldest first."""
    return read_as(connection, Removal, statement("removals", "list"))


def add_removal(
    connection: psycopg.Connection, digest: bytes, kind: str, *, reason: str, by: str, cut: bool
) -> None:
    """Add an entry; with `cut`, the mail is also cut out of stored archives.

    An existing entry stays, except that it may become `cut`.
    """
    entry = {"digest": digest, "kind": kind, "reason": reason, "removed_by": by, "cut": cut}
    connection.execute(statement("removals", "add"), entry)


def withdraw_removals(
    connection: psycopg.Connection, digests: Collection[bytes]
) -> tuple[int, list[ListMonth]]:
    """Delete entries; return their number and the months that must be loaded again."""
    parameters = {"digests": [*digests]}
    hidden = read_column(connection, statement("removals", "hidden_digests"), parameters)
    months = _mark_for_reload(connection, digests, {*digests, *hidden})
    months += connection.execute(statement("removals", "fetch_again"), parameters).fetchall()
    connection.execute(statement("removals", "delete_cut"), parameters)
    connection.execute(statement("removals", "reveal_ids"), parameters)
    count = connection.execute(statement("removals", "delete"), parameters).rowcount
    return count, sorted({ListMonth(*row) for row in months})


def show_ids(connection: psycopg.Connection, digests: Collection[bytes]) -> None:
    """Stop hiding ids that a stored message also has, in a transaction.

    The months that contain their placeholders are marked to be loaded again.
    """
    parameters = {"digests": [*digests]}
    removed = connection.execute(statement("removals", "show_removed"), parameters).rowcount
    cut = connection.execute(statement("removals", "show_cut"), parameters).rowcount
    if removed or cut:
        _mark_for_reload(connection, (), digests)


def _mark_for_reload(
    connection: psycopg.Connection, removals: Collection[bytes], hidden: Collection[bytes]
) -> list[tuple[Any, ...]]:
    """Mark months that omit mail for removals, or name hidden ids, to be loaded; return them."""
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
    """A message that the stored archive of a month no longer contains.

    `message_digest` is None if a stored message also has the id, which then stays visible.
    """

    removal: bytes
    message_digest: bytes | None
    key_prefix: str


def read_cut(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return the digests of mail that is cut out of archives; `ids` are of all forgotten mail.

    Raises:
        ForgetKeyError: this machine does not have the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    rows = connection.execute(statement("removals", "cut_digests")).fetchall()
    return forgotten._replace(
        messages=frozenset(digest for message, digest in rows if message),
        senders=frozenset(digest for message, digest in rows if not message),
    )


def record_cut(
    connection: psycopg.Connection, month: ListMonth, messages: Iterable[CutMessage]
) -> None:
    """Record messages that were cut out of the archive of a month."""
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("removals", "record_cut"),
            [{**month.columns, **message._asdict()} for message in messages],
        )


def drop_reused(connection: psycopg.Connection, month: ListMonth) -> None:
    """Drop the records of cut messages of a month whose keys a stored message has now."""
    connection.execute(statement("removals", "drop_reused"), month.columns)


def uncut_months(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive contains mail that must be cut out.

    Months from which mail of some `removals` was cut are included: an earlier file of such a month
    may have been restored.
    """
    asked = {"removals": [*removals]}
    return read_as(connection, ListMonth, statement("removals", "uncut_months"), asked)


def months_holding(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive contains mail of some removals."""
    asked = {"removals": [*removals]}
    return read_as(connection, ListMonth, statement("removals", "months_holding"), asked)
