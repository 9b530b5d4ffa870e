"""A parsed message: its fields with all repairs done, and the flags that name the repairs."""

from datetime import datetime
from typing import NamedTuple

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.dates import Arrival
from mail_assets.mail.message.part import AttachedText, Attachment
from mail_assets.mail.message.subjects import has_prefix

FLAGS = {
    "addresses_capped": "more recipients than MAX_ADDRESSES; the first are kept",
    "author_uncertain": "From was a list's or a gateway's, and the author's address is not known",
    "charset_guessed": "text is not UTF-8 and has no true label: it is read by the charset of its "
    "list (`charset` in lists.toml, or pipermail's word for @), else as windows-1252",
    "date_repaired": "sent_at is not what the Date field says by the standard",
    "encrypted": "the message is encrypted (PGP or S/MIME) and cannot be read",
    "generated_id": "no Message-ID; the id is made from From, Date, Subject and body",
    "header_repaired": "the header did not begin in the first line, was broken by a blank line, or "
    "the file was in UTF-16 or had odd line ends: it was found by the names of its fields",
    "headers_capped": "the header block, a value or the subject was longer than its limit",
    "munged_from": "a list server or a gateway had rewritten From; the author is restored",
    "no_boundary": "the boundary of a multipart is not there: found by its lines, or read as text",
    "no_headers": "none of the header fields that matter is there",
    "no_text": "the message has content but no text that can be read: images, a file, an encrypted "
    "or unknown form",
    "references_capped": "as many references as MAX_REFERENCES; of more the middle is dropped",
    "suspicious": "neither Message-ID nor Date: perhaps no message but a wrong split",
    "text_capped": "the body or the text of a patch was cut at its limit",
    "too_deep": "parts nested deeper than MAX_DEPTH, or encoded beyond MAX_OPENED, were not opened",
    "too_many_parts": "parts beyond MAX_PARTS were left out",
    "truncated": "the message was longer than the splitter's limit and was cut",
}


class Message(NamedTuple):
    """A message with all repairs done. No text in it holds NUL or lone surrogates."""

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
    arrival: Arrival | None  # None if only its sender dates it
    received: Arrival | None  # the arrival without what the From_ line says
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    list_id: str  # "name.domain" in lower case, "" if the message names no list
    body_text: str
    attached_texts: tuple[AttachedText, ...]  # offsets of attached messages in body_text
    body_kind: str  # plain, enriched, html, calendar or none
    attachments: tuple[Attachment, ...]
    patch_texts: tuple[str, ...]  # of the attachments that are patches
    flags: tuple[str, ...]  # names from FLAGS, sorted

    @property
    def answers(self) -> bool:
        """True if it answers or forwards another message, by the ids it names and its subject."""
        return bool(self.in_reply_to or self.references) or has_prefix(self.subject)


class TextIdentity(NamedTuple):
    """Digests by which copies of one message in archives of any kind agree.

    Copies under one id have the same content unless two digests of a kind differ; None is unknown
    and differs from nothing. `text` covers Date, subject and body without what lists add: tags of
    the subject, footers, disguises of addresses, line breaks. `outline` is the same with `?` for
    letters outside of ASCII. `files` are the attachments.
    """

    text: bytes | None
    outline: bytes | None
    files: bytes | None
