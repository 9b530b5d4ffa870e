"""Select the text parts of a message that a reader sees, and join them to its body."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from mail_assets.mail.message.headers import Headers, decode_field
from mail_assets.mail.message.mime import MimeTree
from mail_assets.mail.message.part import Part
from mail_assets.mail.message.part_text import KINDS, PartReader, PartText

MAX_FIELD = 500  # characters of a field above the text of an attached message

_FIELDS = (("From", "from"), ("Date", "date"), ("Subject", "subject"))


def _format_head(headers: Headers, usual: str = "") -> str:
    """Return author, date and subject of a message, a line each, and a blank line; "" without any.

    `usual` is the charset of its list.
    """
    lines = [
        f"{label}: {value[:MAX_FIELD]}\n"
        for label, field in _FIELDS
        if (value := decode_field(headers, field, usual))
    ]
    return "".join([*lines, "\n"]) if lines else ""


MAX_BODY = 1 << 20  # characters; longer texts are logs

_NO_HTML = re.compile(
    r"(?i)not (?:support|display|read|able to (?:view|read|display))\w*.{0,40}\bhtml|"
    r"html[- ](?:capable|enabled|compatible|compliant)"
)
_MAX_NOTICE = 400  # characters of a plain part that only says that the reader shows no HTML
_PREFERRED = ("plain", "enriched", "html", "calendar")
# Text for programs, and other forms of a text that another part has.
_NO_PROSE = frozenset(
    [
        *["text/css", "text/directory", "text/javascript", "text/rfc822-headers", "text/rtf"],
        *["text/vcard", "text/watch-html", "text/x-amp-html", "text/x-moz-deleted"],
        *["text/x-vcard", "text/xml"],
    ]
)


class AttachedText(NamedTuple):
    """Offsets in the body at which an attached message begins."""

    start: int  # of the lines that name its author, date and subject
    text_start: int


class Body(NamedTuple):
    """The visible text of a message, and the parts that it is made of."""

    kind: str  # plain, enriched, html, calendar or none
    text: str
    attached: tuple[AttachedText, ...]
    used: frozenset[int]  # indices of the parts with this text, in this or another form
    capped: bool
    guessed: bool = False  # a part's charset had to be guessed

    @property
    def own_text(self) -> str:
        """The text without that of attached messages, unless there is no other."""
        start = self.attached[0].start if self.attached else 0
        return self.text[:start] if start else self.text


def is_text_part(part: Part) -> bool:
    """Return whether a body can be read from the part."""
    return part.type in KINDS


def select_body(tree: MimeTree, usual: str = "") -> Body:
    """Return the visible text of the message, followed by that of the messages attached to it.

    Each message gives its unnamed text parts in order; without any, the named ones; without these
    too, text of other types. An attached message begins with its author, date and subject. `usual`
    is the charset of the list, for parts that name none.
    """
    reader = PartReader(usual)
    if not tree.attached:
        body = _select(reader, tree.parts)
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


def _select(reader: PartReader, parts: list[Part]) -> Body:
    if len(parts) == 1 and (body := _read_only_part(reader, parts[0])):
        return body
    shown = [part for part in parts if part.disposition != "attachment"]
    own = [part for part in shown if is_text_part(part)]
    capped = False
    for group in (
        [part for part in own if not part.filename],
        [part for part in own if part.filename],
        [part for part in shown if _may_be_prose(part)],
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
    return part.type.startswith("text/") and not is_text_part(part) and part.type not in _NO_PROSE


def _join(reader: PartReader, parts: list[Part]) -> Body:
    """Return the texts of the parts joined, one of each multipart/alternative.

    Outside of an alternative other text counts only before any plain text: after plain text it
    repeats that, and plain text after it is a list footer.
    """
    slots: dict[int, list[Part]] = {}
    for part in parts:
        slots.setdefault(part.group or -part.number - 1, []).append(part)
    found: list[PartText] = []
    used: set[int] = set()
    capped = False
    for slot in slots.values():
        text = _read_best_form(reader, slot, found)
        capped = capped or text.capped
        if text.text:
            found.append(text)
            used.update(part.number for part in slot)
    texts = [one.text for one in found]
    whole = "\n".join([*(text.removesuffix("\n") for text in texts[:-1]), *texts[-1:]])
    return Body(found[0].kind if found else "none", whole, (), frozenset(used), capped)


def _read_best_form(reader: PartReader, slot: list[Part], found: list[PartText]) -> PartText:
    """Return the first form with text, except a notice that the reader shows no HTML."""
    forms: dict[str, list[Part]] = {}
    for part in slot:
        forms.setdefault(KINDS.get(part.type, "plain"), []).append(part)
    if "plain" not in forms and any(one.kind == "plain" for one in found):
        return PartText("plain", "", False)
    notice = PartText("plain", "", False)
    for kind in _PREFERRED:
        text = _read_all(reader, kind, forms.get(kind, ()))
        if not text.text:
            notice = notice._replace(capped=notice.capped or text.capped)
        elif kind == "plain" and "html" in forms and _says_no_html(text.text):
            notice = text
        else:
            return text._replace(capped=text.capped or notice.capped)
    return notice


def _read_all(reader: PartReader, kind: str, parts: Iterable[Part]) -> PartText:
    texts = [reader.read(part) for part in parts]
    found = [one.text for one in texts if one.text]
    return PartText(kind, "\n".join(found), any(one.capped for one in texts))


def _says_no_html(text: str) -> bool:
    return len(text) < _MAX_NOTICE and _NO_HTML.search(text) is not None
