"""Read messages for mailboxes and feeds: each once, across lists and months."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.postgres.statements import read_column, statement
from mail_assets.tables.messages import utc


class ExportedMessage(NamedTuple):
    """The copy of a message's text that arrived first, without fields that only this archive has.

    `text` is the number of the text where several texts claim the id, else None.
    """

    message_id: str
    lists: tuple[str, ...]
    sent_at: dt.datetime
    subject: str
    from_name: str
    from_email: str
    recipients: tuple[str, ...]
    cc: tuple[str, ...]
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    body_text: str
    attachments: tuple[Mapping[str, Any], ...]
    by_subject: bool  # only its subject joins it to its thread
    text: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the message as plain values; "sent_at" is ISO 8601 in UTC."""
        attachments = [{name: one[name] for name in ("name", "type")} for one in self.attachments]
        times = {"sent_at": utc(self.sent_at), "contested": self.text is not None}
        return {**self._asdict(), **times, "attachments": attachments}


def list_thread(connection: psycopg.Connection, thread_id: str, most: int) -> list[str]:
    """Return at most `most` ids of the archived messages of a thread, oldest first."""
    parameters = {"thread_id": thread_id, "most": most}
    return read_column(connection, statement("exports", "thread"), parameters)


def list_newest(connection: psycopg.Connection, thread_id: str, most: int) -> list[str]:
    """Return the ids of the newest messages of a thread, newest first."""
    parameters = {"thread_id": thread_id, "most": most}
    return read_column(connection, statement("exports", "newest"), parameters)


class TextOf(NamedTuple):
    """A message, and the number of one of its texts where several claim its id."""

    message_id: str
    text: int = 1


def read_messages(
    connection: psycopg.Connection, wanted: Sequence[TextOf]
) -> list[ExportedMessage]:
    """Return messages in the order that they are wanted in, without those in no archive."""
    parameters = {"ids": [one.message_id for one in wanted], "texts": [one.text for one in wanted]}
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("exports", "messages"), parameters).fetchall()
    return [ExportedMessage(**row) for row in rows]
