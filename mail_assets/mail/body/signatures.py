"""Match what signs a mail below its text: "-- " and its block, PGP armour, phones."""

import re

from mail_assets.mail.body.attributions import is_attribution
from mail_assets.mail.body.ending_heads import begins_ending
from mail_assets.mail.body.footers import match_list_footer
from mail_assets.mail.body.header_blocks import separator_kind
from mail_assets.mail.body.line_rule import BodyLines, LineBlock
from mail_assets.mail.body.names import looks_like_name
from mail_assets.mail.body.signature_phrases import DEVICE_PHRASES

_MAX_SIGNATURE = 40  # lines; a longer "signature" is text under a separator
_NEAR_END = 12  # lines from a damaged separator to the end of the body, or
_MAX_DAMAGED = 8  # visible lines below one that is farther from it
_MAX_LONE_SIGNATURE = 4  # lines (RFC 1855 section 2.1.1) without any text above
_MAX_ARMOUR = 60

_SEPARATOR = "-- "  # RFC 3676 section 4.3
# without its blank, with a no-break one, in quoted-printable, escaped by PGP, made a dash
_DAMAGED = re.compile(r"(?:--[ \xa0\t]{0,3}|--=20|- -- ?|[–—] ?)$")
_DASHES = frozenset("-–—")
_SQL_COMMENT = re.compile(r"--(?!-)")  # beside a damaged separator
_SQL_COMMENT_TEXT = re.compile(r"-- \S")  # beside a "-- "
_ARMOUR = re.compile(
    r"-----(BEGIN PGP (?:SIGNED MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)|END PGP SIGNATURE)-----\s*$"
)
_DEVICE = re.compile(rf"(?i)[\W_]{{0,4}}(?:{'|'.join(DEVICE_PHRASES)})")


def match_signature(body: BodyLines, i: int) -> LineBlock | None:
    """ "-- " up to a quote, a patch, another block or the end; a damaged one has a short block.

    A letter written below the separator, with nothing above it, is no signature. A separator
    right above a list's footer belongs to the footer.
    """
    lines = body.lines
    if not _is_separator(lines[i]):
        return None
    comment = _SQL_COMMENT_TEXT if lines[i] == _SEPARATOR else _SQL_COMMENT
    if lines[i][:2] == "--" and any(comment.match(line) for line in body.neighbours(i)):
        return None
    limit = min(len(lines), i + 1 + _MAX_SIGNATURE)
    stop = i + 1
    while stop < limit and not _ends_signature(body, stop):
        stop += 1
    if stop == i + 1 + _MAX_SIGNATURE:
        return None
    visible = sum(map(bool, body.texts[i + 1 : stop]))
    if lines[i] != _SEPARATOR and len(lines) - i > _NEAR_END:
        between = stop < len(lines) and _is_separator(lines[stop])  # as grep has it
        if between or visible > _MAX_DAMAGED:
            return None
    if not visible and stop == i + 1 < len(lines) and lines[stop][:1] not in "-_":
        footer = match_list_footer(body, stop)
        if footer is not None:
            return footer
    above = body.text_above or 0 <= body.first_quote < i
    if not above and visible > _MAX_LONE_SIGNATURE:
        return LineBlock(i + 1, "signature")
    return LineBlock(stop, "signature")


def match_pgp_armour(body: BodyLines, i: int) -> LineBlock | None:
    """PGP: a signature or key as a whole, of a clear-signed message its frame only."""
    match = _ARMOUR.match(body.lines[i])
    if not match:
        return None
    block = body.lines[i : i + _MAX_ARMOUR]
    if match[1] == "BEGIN PGP SIGNED MESSAGE":  # its "Hash:" lines, up to the blank line
        stop = next((x for x, line in enumerate(block[:6]) if not line.strip()), 0)
    elif match[1].startswith("BEGIN"):
        stop = next((x for x, line in enumerate(block) if line.startswith("-----END PGP")), 0)
    else:
        stop = 0
    return LineBlock(i + stop + 1, "signature")


def match_device_signature(body: BodyLines, i: int) -> LineBlock | None:
    """ "Sent from my phone", under a blank line or a name; a wrapped sentence can start so too."""
    above = body.texts[i - 1] if i else ""
    if (above and not looks_like_name(above)) or not _DEVICE.match(body.texts[i]):
        return None
    below = "".join(body.texts[i + 1 : i + 2])
    ended = (
        not below
        or i + 1 in body.quote_heads
        or _ends_signature(body, i + 1)
        or is_attribution(below)
    )
    return LineBlock(i + 1, "signature") if ended else None


def _is_separator(line: str) -> bool:
    return line == _SEPARATOR or (line[:1] in _DASHES and _DAMAGED.match(line) is not None)


def _ends_signature(body: BodyLines, i: int) -> bool:
    """Tell whether something else begins at line i."""
    line = body.lines[i]
    return (
        bool(body.quoted[i])
        or body.kinds[i] == "patch"
        or _is_separator(line)
        or bool(separator_kind(line))
        or _ARMOUR.match(line) is not None
        or (begins_ending(body.texts, i) and match_list_footer(body, i) is not None)
        or (bool(body.texts[i]) and body.quote_follows(i + 1) and is_attribution(line))
    )
