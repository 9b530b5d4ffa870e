"""Forgotten messages: records of the messages that months omit, and deletion of their rows.

Also replaces forgotten people in To, Cc and Reply-To of other mail by a placeholder, and finds rows
that still contain forgotten mail. Ids and addresses are compared here because the key of their
digests never goes to the database. forgetting/ handles files and indexes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, LiteralString, NamedTuple

import psycopg

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.forgotten import NOBODY, Forgotten
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_as, read_column, read_value, statement
from mail_assets.tables.chunks import chunk_key
from mail_assets.tables.removals import LESS
from mail_assets.tables.threads import discard_nodes


class RemovedMessage(NamedTuple):
    """A message that an archive contains and that its month omits because of a removal.

    `message_digest` is None if a stored message also has the id, which then stays visible.
    """

    ordinal: int
    removal: bytes
    message_digest: bytes | None
    key_prefix: str


class Copy(NamedTuple):
    """A row of messages to delete."""

    month: ListMonth
    message_id: str
    variant: int
    content_hash: str
    ordinal: int
    from_name: str
    from_email: str

    @property
    def key_prefix(self) -> str:
        """The prefix of the keys of its chunks."""
        variant_hash = self.content_hash if self.variant else ""
        return key_prefix(self.month, self.message_id, variant_hash)


def key_prefix(month: ListMonth, message_id: str, variant_hash: str) -> str:
    """Return the prefix of a message's chunk keys, up to "#", as message_key does in SQL."""
    return chunk_key(month, message_id, variant_hash, 0).partition("#")[0]


def find_copies(
    connection: psycopg.Connection, message_ids: Collection[str], senders: Collection[str]
) -> list[Copy]:
    """Return the rows of some messages, and of mail that some senders may have written.

    Senders are in lower case. Rows whose sender's name contains the address are included, even if
    it is a part of a longer address: the caller must check.
    """
    asked = {"message_ids": [*message_ids], "senders": [*senders]}
    rows = connection.execute(statement("removed_messages", "find_copies"), asked)
    return [Copy(ListMonth(list_name, month), *rest) for list_name, month, *rest in rows]


def _copy_columns(copies: Collection[Copy]) -> dict[str, list[Any]]:
    return {
        "lists": [copy.month.list_name for copy in copies],
        "months": [copy.month.month for copy in copies],
        "message_ids": [copy.message_id for copy in copies],
        "variants": [copy.variant for copy in copies],
    }


def delete_copies(connection: psycopg.Connection, copies: Collection[Copy]) -> int:
    """Delete rows of messages, their patches and chunks; return the number of chunks."""
    keys = _copy_columns(copies)
    connection.execute(statement("removed_messages", "delete_messages"), keys)
    connection.execute(statement("removed_messages", "clear_entries"), keys)
    connection.execute(statement("removed_messages", "delete_patches"), keys)
    return connection.execute(
        statement("removed_messages", "delete_chunks"),
        {
            "key_prefixes": [copy.key_prefix for copy in copies],
            "message_ids": [copy.message_id for copy in copies],
        },
    ).rowcount


def record_removed(
    connection: psycopg.Connection, month: ListMonth, removed: Collection[RemovedMessage]
) -> None:
    """Add messages that a month omits and its archive contains."""
    if not removed:
        return
    prefixes = {**month.columns, "key_prefixes": [row.key_prefix for row in removed]}
    connection.execute(statement("removed_messages", "hold_again"), prefixes)
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("removed_messages", "record"),
            [{**month.columns, **row._asdict()} for row in removed],
        )


def replace_removed(
    connection: psycopg.Connection, month: ListMonth, removed: Collection[RemovedMessage]
) -> None:
    """Replace the records of a month that is loaded again.

    Ids of a forgotten sender's mail stay hidden even if the archive no longer contains the mail.
    """
    prefixes = [row.key_prefix for row in removed]
    parameters = {**month.columns, "key_prefixes": prefixes}
    connection.execute(statement("removed_messages", "keep_gone"), parameters)
    connection.execute(statement("removed_messages", "clear"), month.columns)
    record_removed(connection, month, removed)


def update_counts(connection: psycopg.Connection, month: ListMonth) -> None:
    """Update the figures of a month and mark it as changed."""
    parameters = {**month.columns, "less": LESS}
    connection.execute(statement("removed_messages", "update_counts"), parameters)


def refresh_statistics(connection: psycopg.Connection) -> None:
    """Renew the planner's statistics, because they contain values of columns."""
    connection.execute(statement("removed_messages", "analyze"))


def removed_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months that omit mail."""
    return read_as(connection, ListMonth, statement("removed_messages", "months"))


def unwanted_keys(
    connection: psycopg.Connection, month: ListMonth | None = None
) -> dict[str, list[str]]:
    """Return index -> keys of removed messages in the manifest of vectors, of a month or all.

    The index is named as in the manifest.
    """
    return _unwanted(connection, statement("removed_messages", "unwanted_keys"), month)


def unwanted_documents(
    connection: psycopg.Connection, month: ListMonth | None = None
) -> dict[str, list[str]]:
    """Return index -> keys of removed messages in the manifest of words, of a month or all."""
    return _unwanted(connection, statement("removed_messages", "unwanted_documents"), month)


def _unwanted(
    connection: psycopg.Connection, query: LiteralString, month: ListMonth | None
) -> dict[str, list[str]]:
    parameters = month.columns if month else {"list": None, "month": None}
    return dict(connection.execute(query, parameters).fetchall())


def stale_keys(connection: psycopg.Connection, month: ListMonth) -> dict[str, list[str]]:
    """Return index -> keys of a month in the manifest of vectors that no chunk has."""
    return _unwanted(connection, statement("removed_messages", "stale_keys"), month)


def stale_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months with keys in the manifest of vectors that no chunk has."""
    return read_as(connection, ListMonth, statement("removed_messages", "stale_months"))


def stale_documents(connection: psycopg.Connection, month: ListMonth) -> dict[str, list[str]]:
    """Return index -> keys of a month in the manifest of words that no message has."""
    return _unwanted(connection, statement("removed_messages", "stale_documents"), month)


def stale_word_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months with deleted mail that a word index may still contain."""
    return read_as(connection, ListMonth, statement("removed_messages", "stale_word_months"))


def read_text_hashes(connection: psycopg.Connection, month: ListMonth) -> set[bytes]:
    """Return the hashes of all texts of a month."""
    return {*read_column(connection, statement("removed_messages", "text_hashes"), month.columns)}


def hide_people(
    connection: psycopg.Connection, addresses: Collection[str], forgotten: Forgotten
) -> int:
    """Replace people by the placeholder; return the number of messages that named them.

    `addresses` are their addresses in lower case; `forgotten` has their digests.
    """
    entries = find_entries(connection, addresses, forgotten)
    if not entries:
        return 0
    parameters = {"entries": entries, "nobody": NOBODY.email}
    return connection.execute(statement("removed_messages", "replace_people"), parameters).rowcount


def find_entries(
    connection: psycopg.Connection, addresses: Collection[str], forgotten: Forgotten
) -> list[str]:
    """Return the entries of address columns, "Name <address>", that name forgotten people."""
    if not addresses:
        return []
    query = statement("removed_messages", "person_entries")
    entries = read_column(connection, query, {"addresses": [*addresses]})
    return sorted(entry for entry in entries if _names_forgotten(entry, forgotten))


def _names_forgotten(entry: str, forgotten: Forgotten) -> bool:
    return forgotten.removal_of_author(*_parse_mailbox(entry)) is not None


def count_named(
    connection: psycopg.Connection, entries: Collection[str], copies: Collection[Copy]
) -> int:
    """Return the number of messages, not in `copies`, with some entries in an address column."""
    values = {"entries": [*entries], **_copy_columns(copies)}
    return int(read_value(connection, statement("removed_messages", "count_named"), values) or 0)


def count_mentioned(
    connection: psycopg.Connection, addresses: Collection[str], copies: Collection[Copy]
) -> int:
    """Return the number of messages, not in `copies`, with some addresses in subject or text."""
    query = statement("removed_messages", "count_mentioned")
    values = {"addresses": [*addresses], **_copy_columns(copies)}
    return int(read_value(connection, query, values) or 0)


def _parse_mailbox(entry: str) -> Address:
    # as tables/messages.py writes it
    name, bracket, rest = entry.rpartition(" <")
    return Address(name, rest.removesuffix(">")) if bracket else Address("", entry)


#: Rows fetched at once when the whole corpus is read.
ROWS = 10_000


def find_names(
    connection: psycopg.Connection, forgotten: Forgotten
) -> tuple[set[str], set[str], set[str]]:
    """Return what rows still name: forgotten ids, forgotten senders, and ids of their mail."""
    message_ids, senders, hidden = set[str](), set[str](), set[str]()
    for (message_id,) in _stream(connection, statement("removed_messages", "all_ids")):
        if forgotten.removal_of_id(message_id) is not None:
            message_ids.add(message_id)
        elif forgotten.hides_id(message_id):
            hidden.add(message_id)
    for author in _stream(connection, statement("removed_messages", "all_authors")):
        senders.update(address for address, _ in forgotten.find_senders(*author))
    for (entry,) in _stream(connection, statement("removed_messages", "all_entries")):
        found = forgotten.find_senders(*_parse_mailbox(entry))
        senders.update(address for address, _ in found)
    return message_ids, senders, hidden


def _stream(connection: psycopg.Connection, query: LiteralString) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        yield from cursor.stream(query, size=ROWS)


def count_rows_left(connection: psycopg.Connection, month: ListMonth, forgotten: Forgotten) -> int:
    """Return the number of messages, patches and chunks of a month that have forgotten mail."""
    left = 0
    query = statement("removed_messages", "left_messages")
    for message_id, name, email, ids, entries in connection.execute(query, month.columns):
        left += (
            forgotten.removal_of_id(message_id) is not None
            or forgotten.removal_of_author(name, email) is not None
            or any(map(forgotten.hides_id, ids))
            or any(_names_forgotten(entry, forgotten) for entry in entries)
        )
    query = statement("removed_messages", "left_patches")
    for message_id, name, email, links in connection.execute(query, month.columns):
        left += (
            forgotten.removal_of_id(message_id) is not None
            or forgotten.removal_of_author(name, email) is not None
            or any(map(forgotten.hides_id, links))
        )
    query = statement("removed_messages", "left_chunks")
    for message_id, removed in connection.execute(query, month.columns):
        left += removed or forgotten.removal_of_id(message_id) is not None
    return left


def count_threads_left(
    connection: psycopg.Connection, month: ListMonth, forgotten: Forgotten
) -> int:
    """Return the number of rows with a forgotten id in the threads of a month's messages."""
    threads = connection.execute(statement("removed_messages", "left_threads"), month.columns)
    aliases = connection.execute(statement("removed_messages", "left_aliases"), month.columns)
    return _count_hidden(threads, forgotten) + _count_hidden(aliases, forgotten)


def _count_hidden(rows: Iterable[tuple[str | None, ...]], forgotten: Forgotten) -> int:
    return sum(any(x is not None and forgotten.hides_id(x) for x in {*row}) for row in rows)


def read_key_prefixes(connection: psycopg.Connection, month: ListMonth) -> list[str]:
    """Return the key prefixes of a month's removed messages."""
    return read_column(
        connection, statement("removed_messages", "left_key_prefixes"), month.columns
    )


#: Statements that replace ids, in their order. Threads are needed until their aliases are written.
#: The nodes of the ids are deleted last, because the aliases are found by the nodes.
HIDE_STATEMENTS = (
    "lock_threads",
    "replace_ids",
    "note_changed_threads",
    "add_aliases",
    "redirect_aliases",
    "delete_aliases",
    "delete_changes",
)


def find_held(connection: psycopg.Connection, message_ids: Collection[str]) -> set[str]:
    """Return the ids among `message_ids` that a stored message has; these are not hidden.

    Several messages may have the same id, for example messages of different authors.
    """
    if not message_ids:
        return set()
    query = statement("removed_messages", "held")
    return {*read_column(connection, query, {"message_ids": [*message_ids]})}


def hide_ids(connection: psycopg.Connection, placeholders: Mapping[str, str]) -> None:
    """Replace ids by their `placeholders` and mark their threads, inside a transaction."""
    parameters = {"message_ids": [*placeholders], "placeholders": [*placeholders.values()]}
    for name in HIDE_STATEMENTS:
        connection.execute(statement("removed_messages", name), parameters)
    discard_nodes(connection, placeholders.keys())


def drop_ids(connection: psycopg.Connection, message_ids: Collection[str]) -> None:
    """Remove ids that no message has any more from threads, and mark these to be built again.

    Call it inside a transaction. Ids that other mail still refers to become ghosts.
    """
    for name in HIDE_STATEMENTS:
        if name not in ("replace_ids", "add_aliases"):
            connection.execute(statement("removed_messages", name), {"message_ids": [*message_ids]})
    discard_nodes(connection, message_ids)
