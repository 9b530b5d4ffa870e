"""Find the attachments of a message (RFC 2183), and the patches among them."""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.archive.compression import Unpacked, unpack_bytes
from mail_assets.mail.message.body import is_text_part, select_body
from mail_assets.mail.message.decoding import is_blank
from mail_assets.mail.message.html_text import html_to_text
from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part import Attachment, Part
from mail_assets.mail.message.part_text import decode_part, decode_part_text

MAX_PATCH_TEXT = 4 << 20  # characters of all patches of a message together
MAX_UNPACKED = 4 << 20  # bytes of all compressed files of a message together
MIN_UNPACKED = 16 << 10  # bytes that a file counts at least: decompressing nothing takes time too

MAX_BLANK = 256 << 10  # bytes of unnamed text parts of a message that are searched for visible text

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
# Types that say nothing of a text: it is a patch by what it holds.
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
    text: str  # unpacked
    fault: str = ""  # why a compressed file has no more text


class Attachments(NamedTuple):
    """The attachments of a message, and the texts of the patches among them."""

    found: tuple[Attachment, ...]
    patches: tuple[PatchFile, ...]
    capped: bool  # the texts were cut at MAX_PATCH_TEXT


def find_attachments(parts: list[Part], in_body: frozenset[int]) -> Attachments:
    """Describe the parts that are attachments, and read the patches among them.

    `in_body` holds the indices of the parts that make the body.
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
    """Return the attached patches of a message, as find_attachments reads them."""
    tree = parse_mime(raw)
    return find_attachments(tree.parts, select_body(tree).used).patches


def read_attached_file(raw: bytes, position: int) -> bytes | None:
    """Return the decoded content of an attachment, None if there is no such position."""
    tree = parse_mime(raw)
    contents = _list_attached_parts(tree.parts, select_body(tree).used)
    return next((data for at, (_, data) in enumerate(contents, 1) if at == position), None)


def _list_attached_parts(
    parts: list[Part], in_body: frozenset[int]
) -> Iterator[tuple[Part, bytes]]:
    """Yield the parts that are attachments with their content, in the order of the message.

    They are neither body nor signature nor inside an attached message. A part of the body with a
    file name is an attachment too, and so is a calendar, which programs read.
    """
    room = MAX_BLANK
    for part in parts:
        is_text = is_text_part(part) and not part.filename and part.type != "text/calendar"
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
    """Return whether an unnamed text part shows nothing: a tracking image, a blank line."""
    if not data.strip():
        return True
    text = decode_part_text(part).text
    return is_blank(html_to_text(text) if part.type == "text/html" else text)


class _File(NamedTuple):
    """An attached part, unpacked if it is compressed."""

    part: Part
    data: bytes
    is_patch: bool
    fault: str = ""
    is_cut: bool = False
    cost: int = 0  # bytes of MAX_UNPACKED


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
