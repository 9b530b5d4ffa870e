"""What an archive holds, found in one pass over its bytes: its dialect, messages and list."""

import hashlib
import re
from collections import Counter
from mmap import mmap
from typing import NamedTuple

from mail_assets.mail.archive.dialects import find_dialect
from mail_assets.mail.archive.header_blocks import MAX_HEADER
from mail_assets.mail.archive.mbox import split_mbox

_HEADER_END = re.compile(rb"\n\r?\n")
_ID = re.compile(rb"^message-id[ \t]{0,8}:[ \t\r\n]{0,8}<?([^\s<>]{1,998})", re.I | re.M)
_LIST_ID = re.compile(
    rb"^list-id[ \t]{0,8}:[^\n<]{0,998}(?:\n[ \t][^\n<]{0,998})?<([^\s<>]{1,255})>", re.I | re.M
)
_NAMING = re.compile(rb"^(?:from|date|subject)[ \t]{0,8}:[^\n]{0,998}", re.I | re.M)


class Contents(NamedTuple):
    """What an archive holds.

    `dialect` is how it was read, `found_dialect` how it seems to be written, None where nothing
    shows it. `messages` are digest -> Message-ID, "" where there is none: the digest is that of
    the Message-ID, else of sender, date and subject, so that it is the same in every rendering.
    `digest` is over all messages without their From_ lines; `list_id` is named by most of them,
    "" where there is none.
    """

    dialect: str
    found_dialect: str | None
    found: int
    digest: str
    messages: dict[str, str]
    list_id: str


def read_contents(data: bytes | mmap, setting: str | None, name: str) -> Contents:
    """Return what the decompressed bytes of an archive hold; `setting` is a dialect, if one is set.

    Raises:
        ArchiveError: it is no mbox.
    """
    found_dialect = find_dialect(data)
    dialect = setting or found_dialect or "plain"
    found, content = 0, hashlib.sha256(dialect.encode())
    messages: dict[str, str] = {}
    lists: Counter[str] = Counter()
    for message in split_mbox(data, dialect, name=name):
        found += 1
        content.update(hashlib.sha256(message.raw).digest())
        header = _header(message.raw)
        digest, message_id = identify(header)
        messages[digest] = message_id
        lists[_list_id(header)] += 1
    list_id, count = lists.most_common(1)[0] if lists else ("", 0)
    majority = list_id if 2 * count > found else ""
    return Contents(dialect, found_dialect, found, content.hexdigest(), messages, majority)


def identify(header: bytes) -> tuple[str, str]:
    """Return the digest that a message is known by, and its Message-ID, "" where it has none."""
    if named := _ID.search(header):
        return hashlib.sha256(named[1]).hexdigest(), _decode(named[1])
    fields = sorted(b" ".join(field.split()).lower() for field in _NAMING.findall(header))
    return hashlib.sha256(b"\n".join(fields) if fields else header).hexdigest(), ""


def _header(raw: bytes) -> bytes:
    end = _HEADER_END.search(raw, 0, MAX_HEADER)
    return raw[: end.start() + 1 if end else MAX_HEADER]


def _list_id(header: bytes) -> str:
    named = _LIST_ID.search(header)
    return _decode(named[1]).lower() if named else ""


def _decode(field: bytes) -> str:
    """Return a field as text without NUL, which no table takes, and the parser leaves out too."""
    return field.decode("utf-8", "replace").replace("\0", "")
