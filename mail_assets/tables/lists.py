"""The lists whose mail may be shown, in a session and in the table `lists`.

All code that shows mail sets the published lists of its session (`show_lists`). It reads the view
`shown_messages` and the views on it (sql/schema.sql). A session that has set no lists sees no mail.
"""

from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus

from mail_assets.postgres.statements import read_column, read_value, statement

#: Stands for all stored lists, for output that is not shown to others.
EVERY_LIST = ("*",)

#: The lists that each session has set, because setting them again costs a round trip.
_shown: WeakKeyDictionary[psycopg.Connection, tuple[str, ...]] = WeakKeyDictionary()


def show_lists(connection: psycopg.Connection, lists: Collection[str]) -> None:
    """Make a session show the mail of some lists, and of no others."""
    wanted = tuple(sorted(lists))
    if _shown.get(connection) == wanted:
        return
    is_lasting = connection.info.transaction_status == TransactionStatus.IDLE
    connection.execute(statement("lists", "show"), {"lists": ",".join(wanted)})
    if is_lasting:  # a transaction that is rolled back also undoes the setting
        _shown[connection] = wanted
    else:
        _shown.pop(connection, None)


def record_lists(connection: psycopg.Connection, languages: Mapping[str, str]) -> None:
    """Record the published lists and their languages; write only what has changed."""
    given = {"lists": [*languages], "languages": [*languages.values()]}
    connection.execute(statement("lists", "record"), given)


def record_list(
    connection: psycopg.Connection, name: str, language: str, *, published: bool
) -> None:
    """Record a list whose mail is loaded."""
    given = {"list": name, "language": language, "published": published}
    connection.execute(statement("lists", "record_one"), given)


def was_message_shown(connection: psycopg.Connection, message_id: str) -> bool:
    """Return whether a message is stored in a list that is or was published."""
    given = {"message_id": message_id}
    return bool(read_value(connection, statement("lists", "was_shown"), given))


def was_list_published(connection: psycopg.Connection, name: str) -> bool:
    """Return whether a list has mail and is or was published."""
    return bool(read_value(connection, statement("lists", "was_published"), {"list": name}))


def find_closed_lists_of(connection: psycopg.Connection, message_id: str) -> list[str]:
    """Return the lists that carry a message; none if the session shows it in one of them."""
    given = {"message_id": message_id}
    return read_column(connection, statement("lists", "closed_lists_of"), given)
