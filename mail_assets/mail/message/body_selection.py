"""Select the text parts of a message that a reader would see, and join them to its body."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from mail_assets.mail.message.html import MAX_HTML, html_to_text
from mail_assets.mail.message.mime import Part
from mail_assets.mail.message.part_content import decode_part_text

MAX_BODY = 1 << 20  # characters; a message of so much text is a log

_NO_HTML = re.compile(
    r"(?i)not (?:support|display|read|able to (?:view|read|display))\w*.{0,40}\bhtml|"
    r"html[- ](?:capable|enabled|compatible|compliant)"
)
_MAX_NOTICE = 400  # characters; a longer plain part says more than that the reader shows no HTML


class Body(NamedTuple):
    """The visible text of a message, and which parts it is."""

    kind: str  # plain, html or none
    text: str
    used: frozenset[int]  # starts of the parts whose text it is, or another form of whose text
    capped: bool


def is_text_part(part: Part) -> bool:
    """Tell whether a body can be read from the part."""
    return part.type in ("text/plain", "text/html", "text/enriched", "application/pgp")


def select_body(raw: bytes, parts: list[Part]) -> Body:
    """The visible text of the message: its own unnamed text parts in order.

    Where it has none: its named text parts, then the text of attached messages.
    """
    own = [p for p in parts if not p.nested and is_text_part(p) and p.disposition != "attachment"]
    capped = False
    for group in (
        [part for part in own if not part.filename],
        [part for part in own if part.filename],
        [part for part in parts if part.nested and is_text_part(part)],
    ):
        body = _joined(raw, group)
        if body.text:
            return body
        capped = capped or body.capped
    return Body("none", "", frozenset(), capped)


def _joined(raw: bytes, parts: list[Part]) -> Body:
    """Texts of the parts joined, one of each multipart/alternative.

    HTML outside of an alternative counts only as long as there is no plain text before it:
    behind plain text it repeats that, in front of plain text the latter is a list footer.
    """
    slots: dict[int, list[Part]] = {}
    for part in parts:
        slots.setdefault(part.group or -part.start - 1, []).append(part)
    found: list[_Text] = []
    used: set[int] = set()
    room = MAX_HTML
    capped = False
    for slot in slots.values():
        has_plain = any(one.kind == "plain" for one in found)
        text = _best_form(raw, slot, room, has_plain=has_plain)
        room -= text.html
        capped = capped or text.capped
        if text.text:
            found.append(text)
            used.update(part.start for part in slot)
    lines = [one.text.removesuffix("\n") for one in found[:-1]]
    whole = "\n".join([*lines, *(one.text for one in found[-1:])])
    return Body(
        found[0].kind if found else "none",
        whole[:MAX_BODY],
        frozenset(used),
        capped or len(whole) > MAX_BODY,
    )


class _Text(NamedTuple):
    kind: str
    text: str
    capped: bool
    html: int  # characters of HTML read for it


def _best_form(raw: bytes, slot: list[Part], room: int, *, has_plain: bool) -> _Text:
    """Plain text, unless it is blank or only says that the reader shows no HTML."""
    plain = [part for part in slot if part.type != "text/html"]
    html = [part for part in slot if part.type == "text/html"]
    text = _texts(raw, "plain", plain, room)
    if html and (plain or not has_plain) and (not text.text or _says_no_html(text.text)):
        rich = _texts(raw, "html", html, room)
        return rich if rich.text else rich._replace(kind="plain", text=text.text)
    return text


def _texts(raw: bytes, kind: str, parts: Iterable[Part], room: int) -> _Text:
    """Visible texts of parts that belong together, of at most room characters of HTML."""
    found, capped, html = [], False, 0
    for part in parts:
        text, cut = decode_part_text(raw, part)
        if part.type == "text/html":
            text, left = text[: room - html], text[room - html :]
            cut = cut or bool(left)
            html += len(text)
            text = html_to_text(text)
        capped = capped or cut
        if text.strip():
            found.append(text)
    return _Text(kind, "\n".join(found), capped, html)


def _says_no_html(text: str) -> bool:
    return len(text) < _MAX_NOTICE and _NO_HTML.search(text) is not None
