"""An attachment of a message, cut from the archive."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.message.attachments import read_attached_file
from mail_assets.month import ListMonth
from mail_assets.steps.raw_message import read_parsed_bytes
from mail_assets.store.objects import ObjectStore


class AttachmentError(RuntimeError):
    """An attachment that cannot be had: names the message, the number, and what there is."""


class AttachmentContent(NamedTuple):
    """A decoded attachment. Name and type are the sender's words; the name has no folders."""

    name: str
    type: str
    data: bytes


def read_attachment(
    connection: psycopg.Connection,
    store: ObjectStore,
    copies: Iterable[Mapping[str, Any]],
    number: int,
) -> AttachmentContent:
    """Return an attachment by its number, from 1, of the first copy that has so many.

    copies are the rows of a message, as show_message() returns them.

    Raises:
        AttachmentError: no copy has such an attachment, or the rows are of a former parser.
        StoreError: the archive that the messages of the month were read from is gone.
    """
    copies = list(copies)
    copy = next((row for row in copies if 1 <= number <= len(row["attachments"])), None)
    if copy is None:
        raise AttachmentError(_name_what_exists(copies, number))
    about = copy["attachments"][number - 1]
    month = ListMonth(copy["list"], copy["month"])
    raw = read_parsed_bytes(
        connection, store, month, copy["archive_offset"], copy["archive_length"]
    )
    data = read_attached_file(raw, number)
    if data is None or hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise AttachmentError(
            f"message {copy['message_id']}: attachment {number} is not what its row of {month} "
            "says; materialize messages for this month again"
        )
    return AttachmentContent(about["name"], about["type"], data)


def _name_what_exists(copies: Iterable[Mapping[str, Any]], number: int) -> str:
    first = max(copies, key=lambda row: len(row["attachments"]))
    names = [part["name"] or part["type"] for part in first["attachments"]]
    listed = ", ".join(f"{at} ({name})" for at, name in enumerate(names, 1))
    found = f"it has {listed}" if listed else "it has none"
    return f"message {first['message_id']} has no attachment {number}: {found}"
