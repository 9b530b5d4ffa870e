"""One raw message to one `Message`: all that the other rooms find out, put together.

What lives here: the message itself, its flags, and the rule that any bytes give a Message or
Unreadable. What does not: how a field is read (`headers`, `addresses`, `dates`, `ids`,
`subjects`, `list_id`), how the parts are (`mime`, `body`, `attachments`) and which messages
are copies of one another (`content_hash`).
"""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from mail_assets.mail.archive.mbox import DIALECTS, MAX_MESSAGE, RawMessage
from mail_assets.mail.message import ids, mime
from mail_assets.mail.message.addresses import MAX_ADDRESSES, Address, addresses, author
from mail_assets.mail.message.attachments import Attachment, attachments_of
from mail_assets.mail.message.body_text import body_of
from mail_assets.mail.message.content_hash import content_hash
from mail_assets.mail.message.dates import month_bounds, sent_at
from mail_assets.mail.message.headers import decode, text, texts
from mail_assets.mail.message.list_id import list_id
from mail_assets.mail.message.subjects import MAX_SUBJECT, base_subject

PARSER_VERSION = "2"

FLAGS = {
    "addresses_capped": "more recipients than MAX_ADDRESSES; the first are kept",
    "date_repaired": "sent_at is not what the Date field says by the standard",
    "encrypted": "the body is an encrypted part and cannot be read",
    "generated_id": "no Message-ID; the id is made from From, Date, Subject and body",
    "headers_capped": "the header block, a value or the subject was longer than its limit",
    "munged_from": "a list server had put its own address into From; the author's is restored",
    "no_boundary": "a multipart without its boundary was read as text",
    "no_headers": "none of the header fields that matter is there",
    "references_capped": "as many references as MAX_REFERENCES; of more the middle is dropped",
    "suspicious": "neither Message-ID nor Date: perhaps no message but a wrong split",
    "text_capped": "the body or the text of a patch was cut at its limit",
    "too_deep": "parts nested deeper than MAX_DEPTH were not opened",
    "too_many_parts": "parts beyond MAX_PARTS were left out",
    "truncated": "the message was longer than the splitter's limit and was cut",
}


class Unreadable(ValueError):  # noqa: N818 - the name says what the bytes are
    """Bytes that give no message; reason says why, for the quarantine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Message:
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
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    list_id: str  # "name.domain" in lower case, "" where the message names no list
    body_text: str
    body_kind: str  # plain, html or none
    attachments: tuple[Attachment, ...]
    flags: tuple[str, ...]  # names from FLAGS, sorted


def parse(message: RawMessage, *, month: str, dialect: str = "pg") -> Message:
    """The message of a RawMessage; month is that of the archive, as `YYYY-MM`."""
    parsed = parse_message(message.raw, month=month, from_line=message.from_line, dialect=dialect)
    marks = _set(truncated=message.truncated, suspicious=message.suspicious)
    return replace(parsed, flags=tuple(sorted({*parsed.flags, *marks})))


def parse_message(
    raw: bytes, *, month: str, from_line: bytes = b"", dialect: str = "pg"
) -> Message:
    """The message in raw, which is header and body without the From_ line.

    Any bytes give a Message or raise Unreadable. A month that is not `YYYY-MM` or an unknown
    dialect raises ValueError.
    """
    month_bounds(month)
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    if not raw.strip():
        raise Unreadable("the message is empty")
    if len(raw) > MAX_MESSAGE:
        raise Unreadable(f"the message has {len(raw)} bytes, more than {MAX_MESSAGE}")
    try:
        return _parse(raw, month, from_line, dialect)
    except Exception as error:  # one bad message must cost a row, not a month
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def _parse(raw: bytes, month: str, from_line: bytes, dialect: str) -> Message:
    tree = mime.parse(raw)
    headers = tree.headers
    body = body_of(raw, tree.parts)
    attachments, patches_capped = attachments_of(raw, tree.parts, body.used)

    charset = next((part.charset for part in tree.parts if part.charset), "")
    mailboxes = partial(addresses, fallback=charset, obfuscated=dialect == "pipermail")
    people = {name: mailboxes(headers.get(name, ())) for name in ("reply-to", "to", "cc")}
    sender = next(iter(mailboxes(headers.get("from", ()))), Address("", ""))
    original = mailboxes(headers.get("x-original-from", ()))
    writer = author(sender, original, people["reply-to"], people["cc"])

    # The date stands behind the last semicolon (RFC 5322 section 3.6.7).
    received = (decode(hop[hop.rfind(b";") + 1 :]) for hop in headers.get("received", ()))
    sent = sent_at(texts(headers, "date"), received, from_line.decode("latin-1"), month)

    whole_subject = text(headers, "subject", charset)
    subject = whole_subject[:MAX_SUBJECT]
    references = ids.references(texts(headers, "references"))
    message_id = ids.message_id(texts(headers, "message-id"))

    flags = tree.flags | _set(
        addresses_capped=any(len(found) > MAX_ADDRESSES for found in people.values()),
        date_repaired=sent.repaired,
        encrypted=any(part.type == "application/pgp-encrypted" for part in tree.parts),
        generated_id=message_id is None,
        headers_capped=len(whole_subject) > MAX_SUBJECT,
        munged_from=writer.munged,
        references_capped=len(references) == ids.MAX_REFERENCES,
        text_capped=body.capped or patches_capped,
    )
    return Message(
        message_id=message_id
        or ids.generated_id(text(headers, "from"), sent.raw, subject, body.text.strip()),
        content_hash=content_hash(raw, tree, dialect),
        subject=subject,
        subject_base=base_subject(subject),
        from_name=writer.name,
        from_email=writer.email,
        reply_to=people["reply-to"][:MAX_ADDRESSES],
        to=people["to"][:MAX_ADDRESSES],
        cc=people["cc"][:MAX_ADDRESSES],
        sent_at=sent.at,
        date_source=sent.source,
        date_raw=sent.raw,
        in_reply_to=ids.in_reply_to(texts(headers, "in-reply-to")),
        references=references,
        list_id=list_id(headers),
        body_text=body.text,
        body_kind=body.kind,
        attachments=attachments,
        flags=tuple(sorted(flags)),
    )


def _set(**flags: bool) -> set[str]:
    """Names of the flags that are set."""
    return {name for name, is_set in flags.items() if is_set}
