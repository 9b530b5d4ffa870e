"""Read messages for mailboxes and feeds: each once, across lists and months."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.postgres.statements import read_column, statement
from mail_assets.tables.messages import utc


class ExportedMessage(NamedTuple):
    """The earliest copy of a message, without fields that only this archive has."""

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

    def as_json(self) -> dict[str, Any]:
        """Return the message as plain values; "sent_at" is ISO 8601 in UTC."""
        attachments = [{name: one[name] for name in ("name", "type")} for one in self.attachments]
        return {**self._asdict(), "sent_at": utc(self.sent_at), "attachments": attachments}


def list_thread(connection: psycopg.Connection, thread_id: str, most: int) -> list[str]:
    """Return at most `most` ids of the archived messages of a thread, oldest first."""
    parameters = {"thread_id": thread_id, "most": most}
    return read_column(connection, statement("exports", "thread"), parameters)


def list_newest(connection: psycopg.Connection, thread_id: str, most: int) -> list[str]:
    """Return the ids of the newest messages of a thread, newest first."""
    parameters = {"thread_id": thread_id, "most": most}
    return read_column(connection, statement("exports", "newest"), parameters)


def read_messages(connection: psycopg.Connection, ids: Sequence[str]) -> list[ExportedMessage]:
    """Return messages in the order of their ids, without those that are in no archive."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("exports", "messages"), {"ids": [*ids]}).fetchall()
    return [ExportedMessage(**row) for row in rows]
