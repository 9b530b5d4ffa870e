"""Values for a message and its parts after all repairs, and the flags that name the repairs."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.dates import Arrival
from mail_assets.mail.message.decoding import find_codec
from mail_assets.mail.message.headers import Headers, first_value, parse_parameters, unfold
from mail_assets.mail.message.subjects import has_prefix
from mail_assets.text.untrusted import clean_line

MAX_NAME = 255  # characters of a file name
MAX_CACHED = 300  # bytes of the three fields together; longer ones are not cached

_CONTENT_FIELDS = ("content-type", "content-transfer-encoding", "content-disposition")
_TOKEN = re.compile(rb"[^\s;,()\"\x00]*")
_WORD_CHARSET = re.compile(rb"=\?([^?*\s]{1,60}+)")


class Part(NamedTuple):
    """A leaf of the MIME tree; or an attached message, whose own parts follow it."""

    number: int  # its index in MimeTree.parts
    type: str  # lower-case media type
    source: bytes  # the raw message, or a decoded container in it
    start: int  # offset of the encoded content in source
    end: int
    encoding: str
    disposition: str
    filename: str
    charset: str
    fallback: str  # the charset label of encoded words in the header of the message around it
    flowed: bool
    delsp: bool
    group: int  # number of the outermost multipart/alternative around it, from 1; 0: none
    message: int  # number of the attached message around it, from 1; 0: none


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is neither body nor signature; `size` and `sha256` are of the decoded content."""

    position: int  # among the attachments of the message, from 1
    name: str
    type: str
    size: int
    sha256: str
    is_patch: bool


class AttachedText(NamedTuple):
    """Offsets in the body of an attached message."""

    start: int  # its separator; lines with its author, date and subject follow
    text_start: int  # its own text


class Entity(NamedTuple):
    """An entity that is not parsed yet: header and body (RFC 2045 section 2.4)."""

    headers: Headers
    source: bytes
    start: int  # offset of the body
    end: int
    depth: int = 0
    group: int = 0
    message: int = 0
    fallback: str = ""
    default: str = "text/plain"  # media type without a Content-Type (RFC 2046 section 5.1.5)

    @property
    def content(self) -> "Content":
        """The description of the content in the header."""
        kind, encoding, place = [first_value(self.headers, name) for name in _CONTENT_FIELDS]
        is_short = len(kind) + len(encoding) + len(place) < MAX_CACHED
        return (_read_content_again if is_short else _read_content)(kind, encoding, place)

    @property
    def encoding(self) -> str:
        """The content transfer encoding in lower case, or "" without one."""
        return self.content.encoding


class Content(NamedTuple):
    """Description of a content in the header of its entity; for the fields see Part."""

    type: str  # "" without a Content-Type; text/plain if that field has no media type
    encoding: str
    disposition: str
    filename: str
    charset: str
    flowed: bool
    delsp: bool


def make_part(here: Entity, content: Content, media: str, number: int) -> Part:
    """Return the entity as a leaf of the tree."""
    _, encoding, disposition, filename, charset, flowed, delsp = content
    return Part(
        *(number, media, here.source, here.start, here.end),
        *(encoding, disposition, filename, charset, here.fallback),
        *(flowed, delsp, here.group, here.message),
    )


def clean_filename(name: str) -> str:
    """Return a name without folders and control characters, or "" for `.` and `..`."""
    if not name:
        return ""
    name = clean_line(name.replace("\\", "/").rpartition("/")[2])
    return "" if name in (".", "..") else name[:MAX_NAME]


def find_declared_charset(headers: Headers) -> str:
    """Return the first charset except UTF-8 in encoded words of Subject or From, or ""."""
    for field in ("subject", "from"):
        for value in headers.get(field, ()):
            for word in _WORD_CHARSET.finditer(value) if b"=?" in value else ():
                label = word[1].decode("ascii", "replace")
                if find_codec(label) not in (None, "utf-8"):
                    return label
    return ""


def _read_content(kind: bytes, encoding: bytes, place: bytes) -> Content:
    media, named = _read_field(kind)
    disposition, placed = _read_field(place)
    is_type = media.count("/") == 1 and len(media) < 128
    name = placed.get("filename") or named.get("name") or placed.get("name") or ""
    return Content(
        type=media if is_type or not media else "text/plain",
        encoding=_read_field(encoding)[0],
        disposition=disposition,
        filename=clean_filename(name),
        charset=named.get("charset", ""),
        flowed=named.get("format", "").lower() == "flowed",
        delsp=named.get("delsp", "").lower() == "yes",
    )


# Cached, because nearly all mail of a list has one of a few values.
_read_content_again = lru_cache(maxsize=1_000)(_read_content)


def _read_field(value: bytes) -> tuple[str, Mapping[str, str]]:
    word = _TOKEN.match(unfold(value))
    token = word[0].lower().decode("ascii", "replace") if word else ""
    has_parameters = b";" in value or b"=" in value
    return token, parse_parameters(value) if has_parameters else {}


FLAGS = {
    "addresses_capped": "more recipients than MAX_ADDRESSES; the first are kept",
    "author_uncertain": "From is by a list or a gateway, and the author's address is not known",
    "charset_guessed": "text is not UTF-8 and has no correct label; it is read by the charset of "
    "its list (`charset` in lists.toml, or pipermail's word for @), else as windows-1252",
    "date_repaired": "sent_at differs from the Date field as the standard reads it",
    "encrypted": "the message is encrypted (PGP or S/MIME) and cannot be read",
    "generated_id": "no Message-ID; the id is made from From, Date, Subject and body",
    "header_repaired": "the header did not begin in the first line, was broken by a blank line, or "
    "the file was in UTF-16 or had odd line ends; the names of its fields identified it",
    "headers_capped": "the header block, a value or the subject was longer than its limit",
    "munged_from": "a list server or a gateway had rewritten From; the author is restored",
    "no_boundary": "the boundary of a multipart does not occur in it; it is split at lines that "
    "look like one, or read as text",
    "no_headers": "the message has none of the header fields that matter",
    "no_text": "the message has content but no readable text: images, a file, an encrypted or "
    "unknown form",
    "references_capped": "MAX_REFERENCES references or more; the middle ones are dropped",
    "suspicious": "neither Message-ID nor Date, or in pipermail no sender; the archive may have "
    "been split in a wrong place",
    "text_capped": "the body or the text of a patch was cut at its limit",
    "too_deep": "parts nested deeper than MAX_DEPTH, or encoded beyond MAX_OPENED, were not opened",
    "too_many_parts": "parts beyond MAX_PARTS were left out",
    "truncated": "the message was longer than the splitter's limit and was cut",
}


#: Flags of messages of which the text is not all.
INCOMPLETE = (
    "encrypted",
    "no_text",
    "text_capped",
    "too_deep",
    "too_many_parts",
    "truncated",
)


def say_incomplete(flags: Collection[str]) -> list[str]:
    """Return why the text of a message with some flags is not all of it."""
    return [FLAGS[one] for one in INCOMPLETE if one in flags]


class Message(NamedTuple):
    """A message after all repairs; no text in it contains NUL or lone surrogates."""

    message_id: str  # without angle brackets
    content_hash: str  # hex sha256, see content_hash.py
    subject: str
    subject_base: str
    from_name: str
    from_email: str
    reply_to: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    sent_at: datetime  # aware, UTC
    date_source: str  # date, received, from_line or archive_month
    date_raw: str
    arrival: Arrival | None  # None if the only dates are by the sender
    received: Arrival | None  # the arrival by the Received field alone
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    list_id: str  # "name.domain" in lower case, "" if the message names no list
    body_text: str
    attached_texts: tuple[AttachedText, ...]  # offsets of attached messages in body_text
    body_kind: str  # plain, enriched, html, calendar or none
    attachments: tuple[Attachment, ...]
    patch_texts: tuple[str, ...]  # texts of the attachments that are patches
    flags: tuple[str, ...]  # names from FLAGS, sorted
    content_outline: bytes = b""  # only for pipermail, see content_hash.py

    @property
    def answers(self) -> bool:
        """True if the ids that it names or its subject say that it answers or forwards another."""
        return bool(self.in_reply_to or self.references) or has_prefix(self.subject)


class TextIdentity(NamedTuple):
    """Digests that are equal for copies of one message in archives of any kind.

    Copies under one id have the same content unless two digests of the same kind differ. None means
    unknown and differs from nothing. `text` covers Date, subject and body without additions by
    lists: tags in the subject, footers, disguised addresses, line breaks. `outline` is the same
    with `?` for non-ASCII letters. `files` covers the attachments.
    """

    text: bytes | None
    outline: bytes | None
    files: bytes | None
