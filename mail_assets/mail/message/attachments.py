"""Find the attachments of a message, and tell which of them are patches."""

import hashlib
import re
from dataclasses import dataclass

from mail_assets.mail.message.body_selection import is_text_part
from mail_assets.mail.message.mime import Part
from mail_assets.mail.message.part_content import decode_part, decode_part_text

MAX_PATCH_TEXT = 4 << 20  # characters of all patches of a message together

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
_PATCH_START_WITHIN = 64 << 10  # bytes
_DEFAULT_NAMES = {"message/rfc822": "message", "application/ms-tnef": "winmail.dat"}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is neither body nor signature. size and sha256 are of the decoded content."""

    name: str
    type: str
    size: int
    sha256: str
    is_patch: bool
    text: str  # of a patch; "" otherwise


def find_attachments(
    raw: bytes, parts: list[Part], in_body: frozenset[int]
) -> tuple[tuple[Attachment, ...], bool]:
    """Parts that are neither body nor signature nor inside an attached message.

    in_body holds the starts of the parts that the body was made of; one with a file name is an
    attachment too. Also returns whether the texts of the patches were cut at MAX_PATCH_TEXT.
    """
    found: list[Attachment] = []
    left, capped = MAX_PATCH_TEXT, False
    for part in parts:
        is_body = part.start in in_body and is_text_part(part) and not part.filename
        if part.nested or is_body or part.type in _SIGNATURES or part.type.startswith("multipart/"):
            continue
        data = decode_part(raw, part)
        if not part.filename and is_text_part(part) and not data.strip():
            continue
        is_patch = _is_patch(part, data)
        patch = ""
        if is_patch and b"\0" not in data[:1024]:
            patch, cut = decode_part_text(raw, part)
            capped = capped or cut or len(patch) > left
            patch = patch[:left]
            left -= len(patch)
        name = part.filename or _DEFAULT_NAMES.get(part.type, "")
        digest = hashlib.sha256(data).hexdigest()
        found.append(Attachment(name, part.type, len(data), digest, is_patch, patch))
    return tuple(found), capped


def _is_patch(part: Part, data: bytes) -> bool:
    """By type or name, or a text file (patches called `.txt` are common) that holds a diff."""
    if part.type in _PATCH_TYPES or _PATCH_NAME.search(part.filename):
        return True
    return part.type.startswith("text/") and bool(_PATCH_START.search(data, 0, _PATCH_START_WITHIN))
