"""Match what ends a mail: signatures, PGP armour, list footers, "Sent from my phone"."""

import re

from mail_assets.mail.body.attributions import is_attribution
from mail_assets.mail.body.header_blocks import separator_kind
from mail_assets.mail.body.line_rule import BodyLines, LineBlock

_MAX_SIGNATURE = 40  # lines; a longer "signature" is text under a separator
_MAX_LONE_SIGNATURE = 4  # lines (RFC 1855 section 2.1.1) without any text above
_MAX_ARMOUR = 60
_MAX_FOOTER = 8

_SIGNATURE = re.compile(r"--[ \xa0]?$")
_SQL_COMMENT = re.compile(r"--(?!-)")  # beside a bare "--"
_SQL_COMMENT_TEXT = re.compile(r"-- \S")  # beside a "-- "
_ARMOUR = re.compile(
    r"-----(BEGIN PGP (?:SIGNED MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)|END PGP SIGNATURE)-----\s*$"
)
_FOOTER = re.compile(
    r"(?i)(?:_{30,}$|-{20,}\(end of broadcast\)-{20,}$|sent via \S+ mailing list\b|"
    r"to unsubscribe from this list: send the line|[\w.+-]{2,40} mailing list$|"
    r"\S+ mailing list -- \S+@|-+ next part -+$)"
)
_NEXT_PART = re.compile(r"-+ next part -+$")  # pipermail, between flattened MIME parts
_SCRUBBED = re.compile(r"An? .{1,40} was scrubbed\.\.\.$")
_CLEAR_FOOTER = re.compile(r"(?i)-|sent via|to unsubscribe|\S+ mailing list --")
_LONE_LINK = re.compile(r"[ \t]*https?://\S+\s*$")
_LIST_LINK = re.compile(r"(?i)mailing list|https?://|@")
_MOBILE = re.compile(
    r"(?i)(?:sent from my |get outlook for |sent via my |von meinem \S+ gesendet|envoyé de mon|"
    r"sent from (?:mail|yahoo|outlook)\b).{0,100}$"
)


def match_signature(body: BodyLines, i: int) -> LineBlock | None:
    """ "-- " up to a quote, a patch, another block or the end; bare "--" only near the end.

    A letter written below the separator, with nothing above it, is no signature.
    """
    lines = body.lines
    if not _SIGNATURE.match(lines[i]) or (lines[i] == "--" and len(lines) - i > 12):
        return None
    comment = _SQL_COMMENT if lines[i] == "--" else _SQL_COMMENT_TEXT
    if any(comment.match(line) for line in body.neighbours(i)):
        return None
    limit = min(len(lines), i + 1 + _MAX_SIGNATURE)
    stop = i + 1
    while stop < limit and not (
        body.quoted[stop]
        or body.kinds[stop] == "patch"
        or _SIGNATURE.match(lines[stop])
        or separator_kind(lines[stop])
        or _FOOTER.match(lines[stop])
        or _ARMOUR.match(lines[stop])
        or _NEXT_PART.match(lines[stop])
        or (body.quote_follows(stop + 1) and is_attribution(lines[stop]))
    ):
        stop += 1
    if stop == i + 1 + _MAX_SIGNATURE:
        return None
    above = body.text_above or body.next_quoted[0] < i
    if not above and sum(bool(line.strip()) for line in lines[i + 1 : stop]) > _MAX_LONE_SIGNATURE:
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


def match_list_footer(body: BodyLines, i: int) -> LineBlock | None:
    """The list's footer: to the blank line, and over one when a link is alone below."""
    lines = body.lines
    text = lines[i].strip()
    if _NEXT_PART.match(text) and not any(_SCRUBBED.match(line) for line in lines[i + 1 : i + 2]):
        return LineBlock(i + 1, "footer")
    if not _FOOTER.match(text):
        return None
    limit = min(body.next_quoted[i], i + _MAX_FOOTER)
    below = lines[i + 1 : limit]
    if not _CLEAR_FOOTER.match(text):
        near = [line for line in below if line.strip()][: 4 if text.startswith("_") else 1]
        if not any(_LIST_LINK.search(line) for line in near):
            return None
    stop = i + 1
    while stop < limit and lines[stop].strip():
        stop += 1
    link = body.next_visible(stop)
    if link < limit and _LONE_LINK.match(lines[link]):
        stop = link + 1
    return LineBlock(stop, "footer")


def match_mobile_signature(body: BodyLines, i: int) -> LineBlock | None:
    """ "Sent from my phone", alone between blank lines; a wrapped sentence can start so too."""
    lines = body.lines
    alone = not any(line.strip() for line in body.neighbours(i))
    return LineBlock(i + 1, "signature") if alone and _MOBILE.match(lines[i].strip()) else None
