"""Choose the body of a message, describe its attachments (RFC 2183) and read its patches.

The body joins the text parts that a reader sees.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.archive.compression import Unpacked, unpack_bytes
from mail_assets.mail.message.decoding import is_blank
from mail_assets.mail.message.headers import Headers, decode_field
from mail_assets.mail.message.html_text import html_to_text
from mail_assets.mail.message.message import AttachedText, Attachment, Part
from mail_assets.mail.message.mime import MimeTree, parse_mime
from mail_assets.mail.message.part_text import (
    KINDS,
    PartReader,
    PartText,
    decode_part,
    decode_part_text,
    is_tnef,
)

MAX_FIELD = 500  # characters of a field above the text of an attached message

#: Line above an attached message, the same as Thunderbird's above a forwarded message. It is needed
#: because no header field is in every message.
SEPARATOR = "-------- Forwarded Message --------\n"
_FIELDS = (("From", "from"), ("Date", "date"), ("Subject", "subject"))


def _format_head(headers: Headers, usual: str) -> str:
    """Return separator, author, date, subject and a blank line; `usual` is the list's charset."""
    lines = [
        f"{label}: {value[:MAX_FIELD]}\n"
        for label, field in _FIELDS
        if (value := decode_field(headers, field, usual))
    ]
    return "".join([SEPARATOR, *lines, "\n"])


MAX_BODY = 1 << 20  # characters; longer texts are logs

_NO_HTML = re.compile(
    r"(?i)not (?:support|display|read|able to (?:view|read|display))\w*.{0,40}\bhtml|"
    r"html[- ](?:capable|enabled|compatible|compliant)"
)
# Words of a plain part that points to the HTML: the format, a browser, another version
_POINTERS = re.compile(
    r"(?i)html|\bmime\b|rich[- ]text|plain[- ]text|text[- ](?:only|version|format)|click here|"
    r"browser|navegador|navigateur|explorador|броузер|браузер|浏览器|瀏覽器|ブラウザ|브라우저|przegląda|"
    r"prohlíže|webbläsar|nettleser|selai[nm]|tarayıcı|böngész|περιήγησ|متصفح|דפדפן|"
    r"\bview (?:it|this|the|our|in|on)|\bonline\b|en ligne|en línea|онлайн|オンライン|"
    r"web-?[ ]?(?:version|ansicht|seite)|(?:version|versión|versão|versione|версия) (?:web|html)|"
    r"(?:can.?t|cannot|can not|unable to|trouble|problem\w{0,5}) "
    r"(?:\w+ )?(?:see|read|view|display)|"
    r"\be?-?mail[- ](?:client|program|reader|software|app)|(?:mail|post)programm"
)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S{1,2000}")
_MAX_NOTICE = 400  # characters of a plain part that says that the reader shows no HTML
_MAX_POINTER = 600  # characters of a plain part that points to the HTML
_MAX_STUB = 60  # characters, without links, of one that has none of these words
# In scripts without blanks between words, each letter counts as a word.
_CJK = "\u2e80-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_MAX_WORDS = 20_000  # words of a text that are compared with another text
_RUN = 3  # words in a row that are compared
_PREFERRED = ("plain", "enriched", "html", "calendar")
# Text for programs, and other forms of a text that is in another part too.
_NO_PROSE = frozenset(
    [
        *["text/css", "text/directory", "text/javascript", "text/rfc822-headers", "text/rtf"],
        *["text/vcard", "text/watch-html", "text/x-amp-html", "text/x-moz-deleted"],
        *["text/x-vcard", "text/xml"],
    ]
)


class Body(NamedTuple):
    """The visible text of a message, and the parts that it comes from."""

    kind: str  # plain, enriched, html, calendar or none
    text: str
    attached: tuple[AttachedText, ...]
    used: frozenset[int]  # indexes of the parts with this text, in this or another form
    capped: bool
    guessed: bool = False  # a part's charset had to be guessed

    @property
    def own_text(self) -> str:
        """The text without that of attached messages, or all text if there is no other."""
        start = self.attached[0].start if self.attached else 0
        return self.text[:start] if start else self.text


def select_body(tree: MimeTree, usual: str = "") -> Body:
    """Return the visible text of a message, followed by that of its attached messages.

    Each message gives its unnamed text parts in order. If it has none, the next source counts:
    named text parts, text of other types, text in unnamed attachments, text in winmail.dat. An
    attached message begins with a separator, its author, date and subject. `usual` is the charset
    of the list, for parts that name none.
    """
    reader = PartReader(usual)
    if not tree.attached:
        body = _select(reader, tree.parts, tree.body_start)
        if reader.guessed:
            body = body._replace(guessed=True)
        fits = len(body.text) <= MAX_BODY
        return body if fits else body._replace(text=body.text[:MAX_BODY], capped=True)
    by_message: dict[int, list[Part]] = {}
    for part in tree.parts:
        by_message.setdefault(part.message, []).append(part)
    own = _select(reader, by_message.pop(0, []))
    texts, used, kind, capped = [own.text], set(own.used), own.kind, own.capped
    attached: list[AttachedText] = []
    size = len(own.text)
    for message, parts in by_message.items():
        if size > MAX_BODY:
            break
        text = _select(reader, parts)
        head = _format_head(tree.attached[message - 1], usual)
        if not text.text and head.strip() == SEPARATOR.strip():
            continue
        above = texts[-1].rstrip("\n")
        size += len(above) - len(texts[-1]) + (2 if size else 0)
        texts[-1] = above + "\n\n" if size else ""
        attached.append(AttachedText(size, size + len(head)))
        texts.append(head + text.text)
        size += len(texts[-1])
        used |= text.used
        kind, capped = kind if kind != "none" else text.kind, capped or text.capped
    whole = "".join(texts)
    return Body(
        kind,
        whole[:MAX_BODY],
        tuple(one for one in attached if one.text_start <= MAX_BODY),
        frozenset(used),
        capped or len(whole) > MAX_BODY,
        reader.guessed,
    )


def _select(reader: PartReader, parts: list[Part], body_start: int = -1) -> Body:
    """Return the body of one message; it is no multipart if its only part is at `body_start`."""
    if len(parts) == 1 and (body := _read_only_part(reader, parts[0])):
        return body
    shown = [part for part in parts if part.disposition != "attachment"]
    own = [part for part in shown if part.type in KINDS]
    is_sole = len(parts) == 1 and parts[0].start == body_start
    capped = False
    for group in (
        [part for part in own if not part.filename],
        [part for part in own if part.filename],
        [part for part in shown if _may_be_prose(part)],
        # senders and list servers mark the text itself as an attachment
        [part for part in parts if part.type in KINDS and (is_sole or not part.filename)],
        [part for part in parts if is_tnef(part)],
    ):
        body = _join(reader, group)
        if body.text:
            return body
        capped = capped or body.capped
    return Body("none", "", (), frozenset(), capped)


def _read_only_part(reader: PartReader, part: Part) -> Body | None:
    if part.type != "text/plain" or part.disposition == "attachment":
        return None
    text = reader.read(part)
    return (
        Body("plain", text.text, (), frozenset((part.number,)), text.capped) if text.text else None
    )


def _may_be_prose(part: Part) -> bool:
    """Return whether a part of an unknown type is text, by RFC 2046 section 4.1.4."""
    return part.type.startswith("text/") and part.type not in KINDS and part.type not in _NO_PROSE


def _join(reader: PartReader, parts: list[Part]) -> Body:
    """Return the texts of the parts joined, one for each multipart/alternative.

    Outside of an alternative, non-plain text after plain text counts only if it has other content.
    Plain text after non-plain text counts: it is a list footer.
    """
    slots: dict[int, list[Part]] = {}
    for part in parts:
        slots.setdefault(part.group or -part.number - 1, []).append(part)
    found: list[PartText] = []
    used: set[int] = set()
    capped = False
    for slot in slots.values():
        text = _read_best_form(reader, slot)
        capped = capped or text.capped
        if text.text and not _is_repeated(text, found):
            found.append(text)
            used.update(part.number for part in slot)
    texts = [one.text for one in found]
    whole = "\n".join([*(text.removesuffix("\n") for text in texts[:-1]), *texts[-1:]])
    return Body(found[0].kind if found else "none", whole, (), frozenset(used), capped)


def _is_repeated(text: PartText, found: list[PartText]) -> bool:
    """Return whether a non-plain text repeats the plain texts above it."""
    plain = [one.text for one in found if one.kind == "plain"]
    if text.kind == "plain" or not plain:
        return False
    if text.kind == "calendar":  # programs read it
        return True
    words, known = _list_words(text.text), _list_words("\n".join(plain))
    length = min(_RUN, len(words))
    runs, others = (
        {tuple(row[at : at + length]) for at in range(len(row) - length + 1)}
        for row in (words, known)
    )
    return 2 * len(runs & others) >= len(runs)


def _list_words(text: str) -> list[str]:
    return [word[0] for word in islice(_WORD.finditer(text.casefold()), _MAX_WORDS)]


def _read_best_form(reader: PartReader, slot: list[Part]) -> PartText:
    """Return the first form that has text; plain text that only points to the HTML is skipped."""
    forms: dict[str, list[Part]] = {}
    for part in slot:
        forms.setdefault(KINDS.get(part.type, "plain"), []).append(part)
    pointer = PartText("plain", "", False)
    for kind in _PREFERRED:
        text = _read_all(reader, kind, forms.get(kind, ()))
        if not text.text:
            pointer = pointer._replace(capped=pointer.capped or text.capped)
        elif kind == "plain" and "html" in forms and _may_point(text.text):
            pointer = text
        elif pointer.text and not (kind == "html" and _points_to(pointer.text, text.text)):
            return pointer
        else:
            return text._replace(capped=text.capped or pointer.capped)
    return pointer


def _read_all(reader: PartReader, kind: str, parts: Iterable[Part]) -> PartText:
    texts = [reader.read(part) for part in parts]
    found = [one.text for one in texts if one.text]
    return PartText(kind, "\n".join(found), any(one.capped for one in texts))


def _may_point(text: str) -> bool:
    short = text.strip()
    if len(short) > _MAX_POINTER:
        return False
    return len(_ADDRESS.sub("", short)) < _MAX_STUB or _POINTERS.search(short) is not None


def _points_to(plain: str, html: str) -> bool:
    """Return whether short plain text points to the HTML text instead of repeating it."""
    words = _list_words(_ADDRESS.sub("", plain))
    # quoted lines do not count: they are no reason to prefer the HTML
    size = sum(len(line) for line in html.split("\n") if not line.startswith(">"))
    if not words or (len(plain) < _MAX_NOTICE and _NO_HTML.search(plain)):
        return True
    if not _POINTERS.search(plain):
        return size > 10 * len(plain) + 300
    other = set(_list_words(html))
    is_other = 2 * sum(word in other for word in words) < len(words)
    return is_other or size > 3 * len(plain) + 100


MAX_PATCH_TEXT = 4 << 20  # characters of all patches of a message together
MAX_UNPACKED = 4 << 20  # bytes of all compressed files of a message together
MIN_UNPACKED = 16 << 10  # bytes counted for a file at least, since even an empty one takes time

MAX_BLANK = 256 << 10  # bytes of a message's unnamed text parts that are tested for visible text

_SIGNATURES = frozenset(
    [
        "application/pgp-signature",
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
        "application/pgp-encrypted",
    ]  # the last holds a version number, not the message
)
_PATCH_TYPE = re.compile(r"[a-z]+/(?:[a-z.]+[.-])?(?:diff|patch)\Z")
_PATCH_NAME = re.compile(r"\.(?:patch|diff)(?:\.txt|\.asc|[._-]?\d{1,3})?\Z", re.I)
# Types that say nothing about the content: only the content decides whether it is a patch.
_ANY_TYPE = re.compile(
    r"text/|application/(?:octet-stream|unknown|text|plain|x-(?!.*(?:mbox|tar|zip)))"
)
_PACKED_NAME = re.compile(r"\.(?:gz|bz2?|xz|zst)\Z", re.I)
_PATCH_START = re.compile(
    rb"^(?:diff (?:--git|--cc|--combined|-[a-zA-Z]+) |Index: .+\r?\n=====|--- .+\r?\n\+\+\+ |"
    rb"\*\*\* .+\r?\n--- )",
    re.M,
)
_PATCH_START_WITHIN = 64 << 10  # bytes
_DEFAULT_NAMES = {
    "application/ms-tnef": "winmail.dat",
    "application/pkcs7-mime": "smime.p7m",
    "application/x-pkcs7-mime": "smime.p7m",
    "message/global": "message",
    "message/rfc822": "message",
    "text/calendar": "invite.ics",
}


class PatchFile(NamedTuple):
    """An attached file that is a patch by its type, its name or its content."""

    name: str
    text: str  # decompressed
    fault: str = ""  # reason why the text of a compressed file is missing or incomplete


class Attachments(NamedTuple):
    """The attachments of a message, and the texts of the patches among them."""

    found: tuple[Attachment, ...]
    patches: tuple[PatchFile, ...]
    capped: bool  # the texts were cut at MAX_PATCH_TEXT


def find_attachments(parts: list[Part], in_body: frozenset[int]) -> Attachments:
    """Describe the parts that are attachments, and read the patches among them.

    `in_body` has the indexes of the parts that make up the body.
    """
    found: list[Attachment] = []
    patches: list[PatchFile] = []
    left, room, capped = MAX_PATCH_TEXT, MAX_UNPACKED, False
    for part, data in _list_attached_parts(parts, in_body):
        file = _open(part, data, room)
        room -= file.cost
        name = part.filename or _DEFAULT_NAMES.get(part.type, "")
        if file.is_patch and (file.fault or b"\0" not in file.data[:1024]):
            text, cut, _ = decode_part_text(file.part)
            capped = capped or file.is_cut or cut or len(text) > left
            patches.append(PatchFile(name, text[:left], file.fault))
            left -= len(patches[-1].text)
        digest = hashlib.sha256(data).hexdigest()
        found.append(Attachment(len(found) + 1, name, part.type, len(data), digest, file.is_patch))
    return Attachments(tuple(found), tuple(patches), capped)


def read_patch_files(raw: bytes) -> tuple[PatchFile, ...]:
    """Return the attached patches of a raw message, as `find_attachments` does."""
    tree = parse_mime(raw)
    return find_attachments(tree.parts, select_body(tree).used).patches


def read_attached_file(raw: bytes, position: int) -> bytes | None:
    """Return the decoded content of the attachment at a position, from 1, or None without one."""
    tree = parse_mime(raw)
    contents = _list_attached_parts(tree.parts, select_body(tree).used)
    return next((data for at, (_, data) in enumerate(contents, 1) if at == position), None)


def _list_attached_parts(
    parts: list[Part], in_body: frozenset[int]
) -> Iterator[tuple[Part, bytes]]:
    """Yield the parts that are attachments with their content, in order.

    An attachment is neither body nor signature nor part of an attached message. A part of the body
    that has a file name is an attachment too, and so is a calendar, since programs read it.
    """
    room = MAX_BLANK
    for part in parts:
        is_text = part.type in KINDS and not part.filename and part.type != "text/calendar"
        if part.message or part.type in _SIGNATURES or part.type.startswith("multipart/"):
            continue
        if is_text and part.number in in_body:
            continue
        data = decode_part(part)
        if is_text and len(data) <= room:
            room -= len(data)
            if _is_blank(part, data):
                continue
        yield part, data


def _is_blank(part: Part, data: bytes) -> bool:
    """Return whether an unnamed text part shows nothing, like a tracking image or a blank line."""
    if not data.strip():
        return True
    text = decode_part_text(part).text
    return is_blank(html_to_text(text) if part.type == "text/html" else text)


class _File(NamedTuple):
    """An attached part, decompressed if needed."""

    part: Part
    data: bytes
    is_patch: bool
    fault: str = ""
    is_cut: bool = False
    cost: int = 0  # bytes that count towards MAX_UNPACKED


def _open(part: Part, data: bytes, room: int) -> _File:
    name = _PACKED_NAME.sub("", part.filename)
    is_named = bool(_PATCH_TYPE.match(part.type) or _PATCH_NAME.search(name))
    found = unpack_bytes(data, room if is_named else min(room, _PATCH_START_WITHIN))
    if found is None:
        is_patch = is_named or bool(_ANY_TYPE.match(part.type) and _holds_patch(data))
        is_broken = is_named and name != part.filename and b"\0" in data[:1024]
        if not is_broken:
            return _File(part, data, is_patch)
        found = Unpacked(data, False, "")
    is_patch = is_named
    if not is_named and "mbox" not in f"{name} {part.type}".lower() and _holds_patch(found.data):
        is_patch, found = True, unpack_bytes(data, room) or found
    content, is_cut, fault = found
    if b"\0" in content[:1024]:
        content, fault = b"", "the file unpacks to no text"
    inner = part._replace(source=content, start=0, end=len(content), encoding="", flowed=False)
    return _File(inner, content, is_patch, fault, is_cut, max(len(found.data), MIN_UNPACKED))


def _holds_patch(data: bytes) -> bool:
    if b"\0" in data[:1024]:
        return False
    return bool(_PATCH_START.search(data, 0, _PATCH_START_WITHIN))
