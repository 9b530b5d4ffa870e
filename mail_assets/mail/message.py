"""One raw message to one `Message`: the fields, the body text, the attachments.

What lives here: the choice of the body among the parts, the content hash and the rule that any
bytes give a Message or Unreadable. What does not: the syntax of fields and parts (`headers`,
`mime`), which each have their own module.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from mail_assets.mail import ids, mime
from mail_assets.mail.addresses import MAX_ADDRESSES, Address, addresses, author
from mail_assets.mail.dates import sent_at
from mail_assets.mail.headers import Headers, text, texts
from mail_assets.mail.html import MAX_HTML, html_to_text
from mail_assets.mail.mbox import DIALECTS, MAX_MESSAGE, RawMessage
from mail_assets.mail.subjects import MAX_SUBJECT, base_subject

PARSER_VERSION = "1"
MAX_PATCH_TEXT = 4 << 20  # characters of all patches of a message together

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

_HASHED = [
    "from",
    "to",
    "cc",
    "date",
    "subject",
    "message-id",
    "in-reply-to",
    "references",
    "content-type",
    "content-transfer-encoding",
]
_SIGNATURES = frozenset(
    [
        "application/pgp-signature",
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
        "application/pgp-encrypted",
    ]  # the last holds a version number, not the message
)
_PATCH_TYPES = frozenset(["text/x-diff", "text/x-patch", "application/x-patch", "text/diff"])
_PATCH_NAME = re.compile(r"\.(?:patch|diff)\Z", re.I)
_PATCH_START = re.compile(
    rb"^(?:diff (?:--git|-[a-zA-Z]+) |Index: .+\r?\n=====|--- .+\r?\n\+\+\+ |\*\*\* .+\r?\n--- )",
    re.M,
)
_NO_HTML = re.compile(
    r"(?i)not (?:support|display|read|able to (?:view|read|display))\w*.{0,40}\bhtml|"
    r"html[- ](?:capable|enabled|compatible|compliant)"
)
_DEFAULT_NAMES = {"message/rfc822": "message", "application/ms-tnef": "winmail.dat"}
_LIST_OWNER = re.compile(
    r"(?:owner-)?([\w.+-]+?)(?:-(?:owner|bounces|admin|request)(?:[+=][^@]*)?)?@"
)


class Unreadable(ValueError):  # noqa: N818 - the name says what the bytes are
    """Bytes that give no message; reason says why, for the quarantine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is neither body nor signature. size and sha256 are of the decoded content."""

    name: str
    type: str
    size: int
    sha256: str
    is_patch: bool
    text: str  # of a patch; "" otherwise


@dataclass(frozen=True, slots=True)
class Message:
    """A message with all repairs done. No text in it holds NUL or lone surrogates."""

    message_id: str  # without angle brackets
    content_hash: str  # hex sha256, see content_hash()
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
    marks = {"truncated": message.truncated, "suspicious": message.suspicious}
    new = {name for name, is_set in marks.items() if is_set}
    return replace(parsed, flags=tuple(sorted({*parsed.flags, *new}))) if new else parsed


def parse_message(
    raw: bytes, *, month: str, from_line: bytes = b"", dialect: str = "pg"
) -> Message:
    """The message in raw, which is header and body without the From_ line.

    Any bytes give a Message or raise Unreadable. A month that is not `YYYY-MM` or an unknown
    dialect raises ValueError.
    """
    datetime.strptime(month, "%Y-%m")
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
    headers, flags = tree.headers, set(tree.flags)
    charset = next((part.charset for part in tree.parts if part.charset), "")
    mailboxes = partial(addresses, fallback=charset, obfuscated=dialect == "pipermail")

    body = _body(raw, tree.parts)
    attachments, patches_capped = _attachments(raw, tree.parts, body.used)
    if body.capped or patches_capped:
        flags.add("text_capped")
    if any(part.type == "application/pgp-encrypted" for part in tree.parts):
        flags.add("encrypted")

    subject = text(headers, "subject", charset)
    if len(subject) > MAX_SUBJECT:
        flags.add("headers_capped")
        subject = subject[:MAX_SUBJECT]

    people = {name: mailboxes(headers.get(name, ())) for name in ("reply-to", "to", "cc")}
    if any(len(found) > MAX_ADDRESSES for found in people.values()):
        flags.add("addresses_capped")
    sender = next(iter(mailboxes(headers.get("from", ()))), Address("", ""))
    original = mailboxes(headers.get("x-original-from", ()))
    writer = author(sender, original, people["reply-to"], people["cc"])
    if writer.munged:
        flags.add("munged_from")

    line = from_line.decode("latin-1")
    sent = sent_at(texts(headers, "date"), texts(headers, "received"), line, month)
    if sent.repaired:
        flags.add("date_repaired")

    references = ids.references(texts(headers, "references"))
    if len(references) == ids.MAX_REFERENCES:
        flags.add("references_capped")
    message_id = ids.message_id(texts(headers, "message-id"))
    if message_id is None:
        flags.add("generated_id")
        message_id = ids.generated_id(text(headers, "from"), sent.raw, subject, body.text.strip())

    return Message(
        message_id=message_id,
        content_hash=content_hash(raw, tree),
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
        list_id=_list_id(headers),
        body_text=body.text,
        body_kind=body.kind,
        attachments=attachments,
        flags=tuple(sorted(flags)),
    )


def content_hash(raw: bytes, tree: mime.Tree) -> str:
    """Hex sha256 of what a message says: the same for every faithful copy of it.

    Header folding, line ends, trailing blank lines, the From_ line and fields that relays and
    list servers add do not count; the fields of _HASHED and the body's bytes do.
    """
    digest = hashlib.sha256()
    for name in _HASHED:
        for value in texts(tree.headers, name):
            digest.update(f"{name}:{' '.join(value.split())}\n".encode())
    body = raw[tree.body_start :].replace(b"\r\n", b"\n").rstrip(b"\n")
    digest.update(b"\n" + body)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Body:
    kind: str
    text: str
    used: frozenset[int]  # starts of the parts whose text it is, or another form of whose text
    capped: bool


def _body(raw: bytes, parts: list[mime.Part]) -> _Body:
    """The visible text of the message: its own unnamed text parts in order.

    Where it has none: its named text parts, then the text of attached messages.
    """
    own = [p for p in parts if not p.nested and _is_text(p) and p.disposition != "attachment"]
    for group in (
        [part for part in own if not part.filename],
        [part for part in own if part.filename],
        [part for part in parts if part.nested and _is_text(part)],
    ):
        body = _joined(raw, group)
        if body.text:
            return body
    return _Body("none", "", frozenset(), False)


def _joined(raw: bytes, parts: list[mime.Part]) -> _Body:
    """Texts of the parts joined, one of each multipart/alternative.

    Plain text is preferred unless it is blank or only says that the reader shows no HTML. HTML
    outside of an alternative counts only as long as there is no plain text before it: behind
    plain text it repeats that, in front of plain text the latter is a list footer.
    """
    slots: dict[int, list[mime.Part]] = {}
    for part in parts:
        slots.setdefault(part.group or -part.start - 1, []).append(part)
    kinds: list[str] = []
    found: list[str] = []
    used: set[int] = set()
    capped = False
    for slot in slots.values():
        plain = [part for part in slot if part.type != "text/html"]
        html = [part for part in slot if part.type == "text/html"]
        kind, (body, cut) = "plain", _texts(raw, plain)
        if html and (plain or "plain" not in kinds) and (not body or _says_no_html(body)):
            rich, rich_cut = _texts(raw, html)
            if rich:
                kind, body, cut = "html", rich, rich_cut
        if body:
            kinds.append(kind)
            found.append(body)
            used.update(part.start for part in slot)
            capped = capped or cut
    joined = "\n".join(x.removesuffix("\n") for x in found[:-1])
    whole = f"{joined}\n{found[-1]}" if len(found) > 1 else "".join(found)
    return _Body(
        kinds[0] if kinds else "none",
        whole[: mime.MAX_TEXT],
        frozenset(used),
        capped or len(whole) > mime.MAX_TEXT,
    )


def _texts(raw: bytes, parts: Iterable[mime.Part]) -> tuple[str, bool]:
    """Visible texts of parts that belong together, and whether any was cut."""
    found, capped = [], False
    for part in parts:
        body, cut = mime.text_of(raw, part)
        if part.type == "text/html":
            cut = cut or len(body) > MAX_HTML
            body = html_to_text(body)
        if body.strip():
            found.append(body)
            capped = capped or cut
    return "\n".join(found), capped


def _is_text(part: mime.Part) -> bool:
    return part.type in ("text/plain", "text/html", "text/enriched", "application/pgp")


def _says_no_html(body: str) -> bool:
    return len(body) < 400 and _NO_HTML.search(body) is not None


def _attachments(
    raw: bytes, parts: list[mime.Part], used: frozenset[int]
) -> tuple[tuple[Attachment, ...], bool]:
    """Parts that are neither body nor signature nor inside an attached message.

    Also whether the texts of the patches were cut.
    """
    found: list[Attachment] = []
    left, capped = MAX_PATCH_TEXT, False
    for part in parts:
        in_body = part.start in used and _is_text(part) and not part.filename
        if part.nested or in_body or part.type in _SIGNATURES or part.type.startswith("multipart/"):
            continue
        data = mime.content(raw, part)
        if not part.filename and _is_text(part) and not data.strip():
            continue
        is_patch = _is_patch(part, data)
        patch = ""
        if is_patch and b"\0" not in data[:1024]:
            patch, cut = mime.text_of(raw, part)
            capped = capped or cut or len(patch) > left
            patch = patch[:left]
            left -= len(patch)
        name = part.filename or _DEFAULT_NAMES.get(part.type, "")
        digest = hashlib.sha256(data).hexdigest()
        found.append(Attachment(name, part.type, len(data), digest, is_patch, patch))
    return tuple(found), capped


def _is_patch(part: mime.Part, data: bytes) -> bool:
    """By type or name, or a text file (patches called `.txt` are common) that holds a diff."""
    if part.type in _PATCH_TYPES or _PATCH_NAME.search(part.filename):
        return True
    return part.type.startswith("text/") and _PATCH_START.search(data, 0, 64 << 10) is not None


def _list_id(headers: Headers) -> str:
    """List-Id (RFC 2919), else the address in X-Mailing-List, else the owner in Sender."""
    named = text(headers, "list-id")
    if named:
        inside = re.search(r"<([^<>\s]+)>", named)
        return (inside[1] if inside else named).lower()[:255]
    for name in ("x-mailing-list", "sender"):
        for address in addresses(headers.get(name, ())):
            is_list = name == "x-mailing-list" or re.search(
                r"^owner-|-(owner|bounces|admin|request)\b", address.email
            )
            if is_list and "@" in address.email:
                return _LIST_OWNER.sub(r"\1.", address.email, count=1)[:255]
    return ""
