"""Replace the addresses of forgotten people by a stand-in, in the To, Cc and Reply-To of others."""

from collections.abc import Collection

import psycopg

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.forgotten import NOBODY, Forgotten
from mail_assets.postgres.statements import statement
from mail_assets.tables.removed_messages import Copy, copy_columns


def hide_people(
    connection: psycopg.Connection, addresses: Collection[str], forgotten: Forgotten
) -> int:
    """Put the stand-in in the place of people; return the number of messages that named them.

    `addresses` are those of the people in lower case, whose digests `forgotten` has.
    """
    entries = find_entries(connection, addresses, forgotten)
    if not entries:
        return 0
    parameters = {"entries": entries, "nobody": NOBODY.email}
    return connection.execute(statement("hidden_people", "replace"), parameters).rowcount


def find_entries(
    connection: psycopg.Connection, addresses: Collection[str], forgotten: Forgotten
) -> list[str]:
    """Return the entries of address columns, "Name <address>", that name forgotten people."""
    if not addresses:
        return []
    parameters = {"addresses": [*addresses]}
    rows = connection.execute(statement("hidden_people", "entries"), parameters).fetchall()
    return sorted(entry for (entry,) in rows if names_forgotten(entry, forgotten))


def names_forgotten(entry: str, forgotten: Forgotten) -> bool:
    """Tell whether an entry of an address column names a forgotten person."""
    return forgotten.removal_of_author(*parse_mailbox(entry)) is not None


def count_named(
    connection: psycopg.Connection, entries: Collection[str], copies: Collection[Copy]
) -> int:
    """Return how many messages beside `copies` hold some entries in an address column."""
    parameters = {"entries": [*entries], **copy_columns(copies)}
    row = connection.execute(statement("hidden_people", "count_named"), parameters).fetchone()
    return int(row[0]) if row else 0


def count_mentioned(
    connection: psycopg.Connection, addresses: Collection[str], copies: Collection[Copy]
) -> int:
    """Return how many messages beside `copies` hold some addresses in their subject or text."""
    parameters = {"addresses": [*addresses], **copy_columns(copies)}
    row = connection.execute(statement("hidden_people", "count_mentioned"), parameters).fetchone()
    return int(row[0]) if row else 0


def parse_mailbox(entry: str) -> Address:
    """Take "Name <address>", as tables/messages.py writes it, apart."""
    name, bracket, rest = entry.rpartition(" <")
    return Address(name, rest.removesuffix(">")) if bracket else Address("", entry)
