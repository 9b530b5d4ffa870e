"""Replace the ids of forgotten messages by placeholders, in other mail and in threads."""

from collections.abc import Collection, Mapping

import psycopg

from mail_assets.postgres.statements import read_column, statement
from mail_assets.tables.threads import discard_nodes

#: In their order. The nodes of the ids are deleted last: their aliases are found by them.
STATEMENTS = (
    "lock_threads",
    "replace_ids",
    "note_changed_threads",
    "add_aliases",
    "redirect_aliases",
    "delete_aliases",
    "delete_changes",
)


def find_held(connection: psycopg.Connection, message_ids: Collection[str]) -> set[str]:
    """Return the ids that a stored message has: other mail may name them.

    Several messages may have one id, such as one of another author.
    """
    if not message_ids:
        return set()
    return {
        *read_column(connection, statement("hidden_ids", "held"), {"message_ids": [*message_ids]})
    }


def hide_ids(connection: psycopg.Connection, placeholders: Mapping[str, str]) -> None:
    """Replace ids by their placeholders and mark their threads to be built again.

    Call it inside a transaction. `placeholders` maps id to placeholder.
    """
    parameters = {"message_ids": [*placeholders], "placeholders": [*placeholders.values()]}
    for name in STATEMENTS:
        connection.execute(statement("hidden_ids", name), parameters)
    discard_nodes(connection, placeholders.keys())


def drop_ids(connection: psycopg.Connection, message_ids: Collection[str]) -> None:
    """Take ids that no message has any more out of threads, which are marked to be built again.

    Call it inside a transaction. Other mail may still name them: these are ghosts then.
    """
    for name in STATEMENTS:
        if name not in ("replace_ids", "add_aliases"):
            connection.execute(statement("hidden_ids", name), {"message_ids": [*message_ids]})
    discard_nodes(connection, message_ids)
