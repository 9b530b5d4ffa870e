"""Select the text parts of a message that a reader sees, and join them to its body."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.message.headers import Headers, decode_field
from mail_assets.mail.message.mime import MimeTree
from mail_assets.mail.message.part import AttachedText, Part
from mail_assets.mail.message.part_text import KINDS, PartReader, PartText
from mail_assets.mail.message.tnef import is_tnef

MAX_FIELD = 500  # characters of a field above the text of an attached message

#: The line above an attached message, as Thunderbird writes it above a forwarded one: no header
#: field is in every message.
SEPARATOR = "-------- Forwarded Message --------\n"
_FIELDS = (("From", "from"), ("Date", "date"), ("Subject", "subject"))


def _format_head(headers: Headers, usual: str = "") -> str:
    """Return a separator, author, date and subject of a message, a line each, and a blank line.

    `usual` is the charset of its list.
    """
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
# Words of a plain part that points to the HTML: the format, a browser, a version to look at
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
_MAX_NOTICE = 400  # characters of a plain part that only says that the reader shows no HTML
_MAX_POINTER = 600  # likewise of one that points to the HTML
_MAX_STUB = 60  # likewise without any words of a pointer
# A letter of a script without blanks between words is a word.
_CJK = "\u2e80-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_MAX_WORDS = 20_000  # of a text that is compared with another
_RUN = 3  # words in a row that two forms of a text share
_PREFERRED = ("plain", "enriched", "html", "calendar")
# Text for programs, and other forms of a text that another part has.
_NO_PROSE = frozenset(
    [
        *["text/css", "text/directory", "text/javascript", "text/rfc822-headers", "text/rtf"],
        *["text/vcard", "text/watch-html", "text/x-amp-html", "text/x-moz-deleted"],
        *["text/x-vcard", "text/xml"],
    ]
)


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
    too, text of other types, that of unnamed attachments, that in winmail.dat. An attached message
    begins with a separator, its author, date and subject. `usual` is the charset of the list, for
    parts that name none.
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
    """Return the body of one message, which is no multipart if a part begins at `body_start`."""
    if len(parts) == 1 and (body := _read_only_part(reader, parts[0])):
        return body
    shown = [part for part in parts if part.disposition != "attachment"]
    own = [part for part in shown if is_text_part(part)]
    is_sole = len(parts) == 1 and parts[0].start == body_start
    capped = False
    for group in (
        [part for part in own if not part.filename],
        [part for part in own if part.filename],
        [part for part in shown if _may_be_prose(part)],
        # senders and list servers mark the text itself as an attachment
        [part for part in parts if is_text_part(part) and (is_sole or not part.filename)],
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
    return part.type.startswith("text/") and not is_text_part(part) and part.type not in _NO_PROSE


def _join(reader: PartReader, parts: list[Part]) -> Body:
    """Return the texts of the parts joined, one of each multipart/alternative.

    Outside of an alternative other text after plain text counts only if it says something else,
    and plain text after other text is a list footer.
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
    """Return whether a text in another form than plain repeats the plain texts above it."""
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
    """Return the first form with text, except plain text that only points to the HTML."""
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
    """Return whether short plain text is no form of the HTML text but points to it."""
    words = _list_words(_ADDRESS.sub("", plain))
    # quoted mail is no reason to prefer the HTML
    size = sum(len(line) for line in html.split("\n") if not line.startswith(">"))
    if not words or (len(plain) < _MAX_NOTICE and _NO_HTML.search(plain)):
        return True
    if not _POINTERS.search(plain):
        return size > 10 * len(plain) + 300
    other = set(_list_words(html))
    is_other = 2 * sum(word in other for word in words) < len(words)
    return is_other or size > 3 * len(plain) + 100
