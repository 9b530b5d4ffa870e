"""Extract the visible text of a part.

Formats: plain text, with format=flowed undone (RFC 3676); text/enriched (RFC 1896) and
text/richtext (RFC 1341); invitations (iCalendar, RFC 5545); TNEF, the container that Outlook sends
as winmail.dat ([MS-OXTNEF], with properties by [MS-OXCDATA]). Attachments inside TNEF are not
extracted. html_text.py reads HTML.
"""

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.message.decoding import (
    decode,
    decode_text,
    decode_transfer,
    find_codec,
    is_blank,
    split_off_footer,
)
from mail_assets.mail.message.html_text import MAX_HTML, html_to_text
from mail_assets.mail.message.message import Part

_TYPES = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_NAMES = frozenset({"winmail.dat", "win.dat"})
_SIGNATURE = b"\x78\x9f\x3e\x22"
_MAX_ITEMS = 10_000  # attributes of a container, or properties of a message

# Attributes of the message; those of an attachment have another level.
_MESSAGE_LEVEL = 1
_BODY, _PROPERTIES, _CODE_PAGE = 0x0002800C, 0x00069003, 0x00069007
# Properties: text, HTML, and the code page of the HTML
_TEXT, _HTML, _INTERNET_CODE_PAGE = 0x1000, 0x1013, 0x3FDE
_STRING, _UNICODE, _MANY = 0x001E, 0x001F, 0x1000
_LENGTHS = {
    **dict.fromkeys([0x0002, 0x0003, 0x0004, 0x000A, 0x000B], 4),
    **dict.fromkeys([0x0005, 0x0006, 0x0007, 0x0014, 0x0040], 8),
    0x0048: 16,
}
_VARIABLE = frozenset({_STRING, _UNICODE, 0x000D, 0x0102})


class TnefText(NamedTuple):
    """Text of a message in TNEF, plain or HTML, or ""."""

    text: str
    is_html: bool


class _Property(NamedTuple):
    id: int
    type: int
    value: bytes


def is_tnef(part: Part) -> bool:
    """Return whether the type or name of a part is that of TNEF."""
    return part.type in _TYPES or part.filename.lower() in _NAMES


def read_tnef(data: bytes) -> TnefText:
    """Return the plain text of a TNEF message, else its HTML; never raises."""
    if not data.startswith(_SIGNATURE):
        return TnefText("", False)
    attributes = dict(_list_attributes(data))
    properties = {one.id: one for one in _list_properties(attributes.get(_PROPERTIES, b""))}
    page = attributes.get(_CODE_PAGE, b"")[:4]
    label = f"cp{int.from_bytes(page, 'little')}" if page else ""
    texts = [_decode(properties.get(_TEXT), label)]
    texts.append(decode_text(attributes.get(_BODY, b""), label))
    for text in texts:
        if not is_blank(text):
            return TnefText(text, False)
    if internet := properties.get(_INTERNET_CODE_PAGE):
        label = f"cp{int.from_bytes(internet.value, 'little')}"
    html = _decode(properties.get(_HTML), label)
    return TnefText(html, bool(html))


def _decode(found: _Property | None, label: str) -> str:
    if found is None:
        return ""
    return decode_text(found.value, "utf-16le" if found.type == _UNICODE else label)


def _list_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = len(_SIGNATURE) + 2
    for _ in range(_MAX_ITEMS):
        if at + 9 > len(data):
            return
        level, name, length = struct.unpack_from("<BII", data, at)
        at += 9
        if level == _MESSAGE_LEVEL:
            yield name, data[at : at + length]
        elif level != 2:
            return
        at += length + 2  # a checksum follows


def _list_properties(data: bytes) -> Iterator[_Property]:
    try:
        (count,) = struct.unpack_from("<I", data, 0)
        at = 4
        for _ in range(min(count, _MAX_ITEMS)):
            kind, name = struct.unpack_from("<HH", data, at)
            at += 4
            if name >= 0x8000:
                at = _skip_name(data, at)
            base, values = kind & ~_MANY, 1
            if kind & _MANY or base in _VARIABLE:
                (values,) = struct.unpack_from("<I", data, at)
                at += 4
            value = b""
            for _ in range(min(values, _MAX_ITEMS)):
                if base in _VARIABLE:
                    (length,) = struct.unpack_from("<I", data, at)
                    at += 4
                else:
                    length = _LENGTHS[base]
                value = data[at : at + length]
                at += length + -length % 4
            yield _Property(name, base, value)
    except (struct.error, KeyError):  # the rest is cut off, or has an unknown type
        return


def _skip_name(data: bytes, at: int) -> int:
    kind, length = struct.unpack_from("<16xII", data, at)
    return at + 24 + (length + -length % 4 if kind else 0)


# Media type -> kind of text
KINDS = {
    "text/plain": "plain",
    "text/markdown": "plain",
    "text/x-markdown": "plain",
    "application/pgp": "plain",
    "text/enriched": "enriched",
    "text/richtext": "enriched",
    "text/html": "html",
    "text/calendar": "calendar",
}


class PartText(NamedTuple):
    """The visible text of a part."""

    kind: str  # plain, enriched, html or calendar
    text: str
    capped: bool  # the text was cut


class PartReader:
    """Reads the parts of one message; `usual` is the charset of its list."""

    def __init__(self, usual: str = "") -> None:
        self.guessed = False  # the charset of a part had to be guessed
        self._usual = usual
        self._room = MAX_HTML

    def read(self, part: Part) -> PartText:
        """Return the visible text of the part, or "" if all of it is blank."""
        kind = KINDS.get(part.type, "")
        if not kind and is_tnef(part):
            text, is_html = read_tnef(decode_part(part))
            kind, capped = "html" if is_html else "plain", len(text) > MAX_TEXT
            text = text[:MAX_TEXT]
        else:
            text, capped, guessed = decode_part_text(part, self._usual)
            self.guessed = self.guessed or guessed
        if kind == "html":
            capped = capped or len(text) > self._room
            text = text[: self._room]
            self._room -= len(text)
            text = html_to_text(text)
        elif kind == "enriched":
            text = enriched_to_text(text)
        elif kind == "calendar":
            text = calendar_to_text(text)
        return PartText(kind or "plain", "" if is_blank(text) else text, capped)


MAX_TEXT = 2 << 20  # characters of one decoded text

_META_CHARSET = re.compile(
    rb"""<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,100}?encoding)[ ]{0,9}=[ ]{0,9}["']?"""
    rb"""([\w.:-]{1,40})""",
    re.I,
)


class DecodedText(NamedTuple):
    """Clean text with LF line ends."""

    text: str
    capped: bool  # cut at MAX_TEXT
    guessed: bool  # the charset was guessed


def decode_part(part: Part) -> bytes:
    """Return the bytes of a part with its transfer encoding undone."""
    return decode_transfer(_encoded(part)[0], part.encoding)


def decode_part_text(part: Part, usual: str = "") -> DecodedText:
    """Return a part as text; `usual` is the charset of the list, for mail that names none."""
    encoded, footer = _encoded(part)
    data = decode_transfer(encoded, part.encoding)
    if capped := len(data) > 4 * MAX_TEXT:
        # cut after a line, so that no character is cut in two
        data = data[: data.rfind(b"\n", 0, 4 * MAX_TEXT) + 1 or 4 * MAX_TEXT]
    label = part.charset
    if (
        part.type == "text/html"
        and find_codec(label) is None
        and (meta := _META_CHARSET.search(data, 0, 4096))
    ):
        label = meta[1].decode("ascii", "replace")
    text, guessed = decode(data, label, part.fallback, usual)
    if footer:
        below = decode(footer, "" if text else label, part.fallback, usual)
        text, guessed = f"{text}\n" * bool(text) + below.text, guessed or below.guessed
    if len(text) > MAX_TEXT:
        capped, text = True, text[:MAX_TEXT]
    if part.flowed:
        text = unflow(text, delsp=part.delsp)
    return DecodedText(text, capped, guessed)


def _encoded(part: Part) -> tuple[bytes, bytes]:
    """Return the encoded content, and a plain footer after base64 text."""
    data = part.source[part.start : part.end]
    is_encoded_text = part.encoding == "base64" and part.type.startswith("text/")
    return split_off_footer(data) if is_encoded_text else (data, b"")


def unflow(text: str, *, delsp: bool = False) -> str:
    """Join the lines of each paragraph of format=flowed text (RFC 3676 section 4).

    Quote marks stay before every line, and space-stuffing is undone. The signature separator `-- `
    and blank lines are never joined to other lines, although some senders leave a space at the end
    of a paragraph.
    """
    lines: list[str] = []
    paragraph: list[str] = []  # pieces of an open flowed line
    open_depth = 0
    for line in text.split("\n"):
        if not (paragraph or line.endswith(" ") or line.startswith((" ", ">"))):
            lines.append(line)
            continue
        rest = line.lstrip(">")
        depth = len(line) - len(rest)
        rest = rest.removeprefix(" ")
        if paragraph and (depth != open_depth or rest == "-- " or not rest):
            lines.append("".join(paragraph))
            paragraph = []
        if not paragraph:
            paragraph.append(">" * depth + " " * bool(depth and rest))
            open_depth = depth
        flowed = rest.endswith(" ") and rest != "-- "
        paragraph.append(rest[:-1] if flowed and delsp else rest)
        if not flowed:
            lines.append("".join(paragraph))
            paragraph = []
    if paragraph:
        lines.append("".join(paragraph))
    return "\n".join(lines)


# --- calendars ---

MAX_COMPONENTS = 20  # events, tasks and notes of one calendar

_UNFOLD = re.compile(r"\n[ \t]")
_LINE = re.compile(r"([A-Za-z0-9-]{1,60}+)((?:;(?:\"[^\"]*+\"|[^\":])*+)?):(.*)", re.S)
_ESCAPE = re.compile(r"\\([\\;,nN])")
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?\Z")
_ZONE = re.compile(r';TZID="?([^";:]{1,100})', re.I)
_LABELS = {"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "LOCATION": "Location"}


def calendar_to_text(calendar: str) -> str:
    """Return summary, times, place and description of each event, separated by blank lines."""
    events: list[dict[str, str]] = []
    inside = ""
    for line in _UNFOLD.sub("", calendar).split("\n"):
        name, parameters, value = _split_line(line)
        if name == "BEGIN" and not inside and value.upper() in _COMPONENTS:
            if len(events) == MAX_COMPONENTS:
                break
            events.append({})
            inside = value
        elif name == "BEGIN" and inside:
            inside += f" {value}"  # an alarm, which has a description of its own
        elif name == "END":
            inside = inside.rpartition(" ")[0]
        elif inside and " " not in inside:
            events[-1].setdefault(name, _read_value(name, parameters, value))
    return "\n\n".join(filter(None, map(_format_event, events)))


def _split_line(line: str) -> tuple[str, str, str]:
    found = _LINE.match(line)
    return (found[1].upper(), found[2], found[3].strip()) if found else ("", "", "")


def _read_value(name: str, parameters: str, value: str) -> str:
    value = _ESCAPE.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value)
    time = _TIME.match(value) if name in ("DTSTART", "DTEND", "DUE") else None
    if time is None:
        return value.strip()
    year, month, day, hour, minute, utc = time.groups()
    zone = _ZONE.search(parameters)
    clock = f" {hour}:{minute}" if hour else ""
    return f"{year}-{month}-{day}{clock}{' UTC' if utc else f' {zone[1]}' if zone else ''}"


def _format_event(event: dict[str, str]) -> str:
    lines = [event["SUMMARY"]] if event.get("SUMMARY") else []
    lines += [f"{label}: {event[name]}" for name, label in _LABELS.items() if event.get(name)]
    if event.get("DESCRIPTION"):
        lines += ["", event["DESCRIPTION"]]
    return "\n".join(lines)


# --- enriched text ---

_PARAMETERS = re.compile(r"<param>[^<]{0,1000}+</param>", re.I)
_COMMAND = re.compile(r"</?(?P<name>[a-z0-9-]{1,60}+)>", re.I)
_LINE_ENDS = re.compile(r"\n+")
_RICHTEXT_SHAPING = {"nl": "\n", "np": "\n", "lt": "<"}  # commands of text/richtext


def enriched_to_text(text: str) -> str:
    """Return the text without its commands: one line end becomes a space, n become n - 1."""
    text = _PARAMETERS.sub("", text).replace("<<", "\0")
    text = _LINE_ENDS.sub(lambda ends: "\n" * (len(ends[0]) - 1) or " ", text)
    text = _COMMAND.sub(lambda command: _RICHTEXT_SHAPING.get(command["name"].lower(), ""), text)
    return text.replace("\0", "<").strip()
