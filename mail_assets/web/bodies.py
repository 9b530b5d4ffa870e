"""Bodies of messages as HTML: who wrote which lines, paragraphs and columns, links.

Text is escaped once, a block at a time: a thread of fifty messages has some thousand lines, and to
fill a template for each took longer than all else. Nothing else of the package makes markup.

A paragraph flows on a narrow screen; lines that stand in columns never do: they are scrolled.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from mail_assets.mail.body.segments import Segment, quote_mail_below
from mail_assets.mail.message.text_addresses import MASK, list_addresses
from mail_assets.text.untrusted import TURNS
from mail_assets.web.requests import page_url

#: A URL to link: no user name before the host, and no characters that change the direction of
#: text. Its path may have the id of a message.
_URL = re.compile(rf"https?://[^\s<>\"'`@/{TURNS}]++(?!@)(?:/[^\s<>\"'`{TURNS}]*+)?")
#: Characters at the end of a sentence, which are no part of a URL before them.
_AFTER_URL = ".,;:!?)]}"
#: Lines of the longest quote and of the longest signature that are not folded (RFC 3676, 4.3,
#: speaks of signatures of up to four lines).
OPEN = {"quote": 12, "signature": 4}
#: Columns of the widest line that needs no scrolling on a desk, eight levels deep in a thread.
WIDE = 76
#: Kinds of segments that are shown like another kind.
_SHOWN_AS = {"attribution": "quote", "footer": "signature"}
#: The marks of a quoted line.
_MARKS = re.compile(r"[ \t]{0,3}[>＞](?:[ \t]?[>＞])*[ \t]?")
#: Characters of a line that was wrapped, at least; a shorter one ended on purpose.
_WRAPPED = 45
#: The begin of a line of prose: no list, prompt, rule or indentation.
_PROSE = re.compile(r"[\w\"'(\[“‘¿¡«„…](?<!_)")
_ITEM = re.compile(r"\(?\w{1,2}[.)]\s")
#: A trailer of a commit, which has a line of its own: "Reviewed-by: Bo".
_TRAILER = re.compile(r"(?:[A-Z][a-z]++(?:-[A-Za-z]++)++|Cc|Link|Fixes|Closes|Bug): ")
#: Lines that stand in columns or are code: a wide gap, a tab, a bar, a statement's end, a prompt,
#: and the indentation of code after the first line.
_COLUMNS = re.compile(
    r"\S(?:(?<![.!?:]) {2}| {3,}+|\t)\S|[;{}\\][^\S\n]*+$|^[$#]|^[^\S\n]*+(?:[|+]|\.\.\.|>>>)"
    r"|^[A-Za-z][\w.-]*+[$#>] |[\u2500-\u259f]|\n(?: {4}|\t)",
    re.MULTILINE,
)
#: The signs without which there are none of these: most prose has none.
_COLUMN_SIGNS = re.compile(r"[\t;{}\\$#>|+\u2500-\u259f]|  |\.\.\.")
_MARKS_OF_PATCH = {"+": "added", "-": "removed", "@": "place"}


class Part(NamedTuple):
    """A part of a body by one writer: text, quote, patch or signature.

    An attribution goes with its quote, a footer with the signature before it. `lines` counts its
    lines, `opening` is the first that has more than a rule or a quote mark.
    """

    kind: str
    text: str
    html: Markup

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return self.text.count("\n") + 1

    @property
    def is_folded(self) -> bool:
        """True if it is shown on demand."""
        return self.lines > OPEN.get(self.kind, self.lines)

    @property
    def opening(self) -> str:
        """The first line that has more than a rule or a quote mark."""
        lines = (line.strip("> ") for line in self.text.split("\n"))
        return next((line for line in lines if line.strip("_-=*> ")), "")


def view_body(document: Mapping[str, Any], mentions: Collection[str]) -> list[Part]:
    """Return the parts of the body of a message or of a post; `mentions` are ids it may link."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, mentions)]


def split_parts(text: str, segments: Sequence[Segment], ids: Collection[str]) -> Iterator[Part]:
    """Yield the parts of a body in order; `ids` are ids of messages that it names."""
    here = [id for id in ids if id in text]
    spans = quote_mail_below(text, segments or [Segment(0, len(text), "text")])
    shown = [
        (_SHOWN_AS.get(kind, kind), text[start:end])
        for start, end, kind in spans
        if text[start:end].strip()  # blank lines do not part an attribution from its quote
    ]
    for kind, some in groupby(shown, key=lambda one: one[0]):
        joined = "".join(part for _, part in some).strip("\n")
        yield Part(kind, joined, _write(kind, joined, here))


def _write(kind: str, text: str, ids: Collection[str]) -> Markup:
    html = link_text(text, ids).split("\n")
    lines = text.split("\n")
    if kind == "patch":
        return _write_patch(lines, html)
    return Markup("\n").join(_write_blocks(kind, lines, html))


def _write_patch(lines: Sequence[str], html: Sequence[str]) -> Markup:
    names = map(_name_sign, ["", *lines], lines, [*lines[1:], ""])
    marked = (
        f'<span class="{name}">{one}</span>' if name else one
        for name, one in zip(names, html, strict=False)
    )
    opening = f'<pre class="patch" dir="auto"{_reach(lines)}>'
    return Markup(opening + "\n".join(marked) + "</pre>")


def _name_sign(above: str, line: str, below: str) -> str:
    """Return the class of a line of a patch; the lines that name its file are no change."""
    if line == "---":  # before the list of files
        return ""
    pairs = (line[:4] + below[:4], above[:4] + line[:4])
    if line.startswith("diff --git ") or "--- +++ " in pairs:
        return "file"
    return _MARKS_OF_PATCH.get(line[:1], "")


def _reach(lines: Sequence[str]) -> str:
    """Return the attribute by which a keyboard reaches lines that are wider than a page."""
    is_wide = any(len(line.expandtabs(8)) > WIDE for line in lines)
    return ' tabindex="0"' if is_wide else ""


class _Block(NamedTuple):
    """Lines `start` to `end` of a part: a paragraph, or blank lines; quoted `depth` times."""

    start: int
    end: int
    depth: int
    shape: str


def _write_blocks(kind: str, lines: Sequence[str], html: Sequence[str]) -> Iterator[Markup]:
    for shape, start, end, depth in _join_columns(_find_blocks(lines)):
        shown = html[start:end]
        if depth and shape == "prose":  # elsewhere the marks stay: lines do not flow
            shown = [
                _wrap_marks(line, one) for line, one in zip(lines[start:end], shown, strict=True)
            ]
        names = f"{kind} {shape}" + (f" depth-{min(depth, 3)}" if depth else "")
        tag = "pre" if shape == "columns" else "p"
        reach = _reach(lines[start:end]) if shape == "columns" else ""
        body = "\n".join(shown)
        yield Markup(f'<{tag} class="{names}" dir="auto"{reach}>{body}</{tag}>')


def _wrap_marks(line: str, html: str) -> str:
    marks = _find_marks(line)
    escaped = marks.replace(">", "&gt;")  # they have no other sign of HTML
    return f'<span class="mark">{escaped}</span>{html[len(escaped) :]}'


def _find_marks(line: str) -> str:
    found = _MARKS.match(line)
    return found[0] if found else ""


def _find_blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Yield the paragraphs: lines between blank ones, quoted to one depth."""
    at = 0
    for (depth, is_blank), some in groupby(map(_unmark, lines), key=itemgetter(0, 1)):
        plain = [line for _, _, line in some]
        if not is_blank:
            yield _Block(at, at + len(plain), depth, find_shape(plain))
        at += len(plain)


def _unmark(line: str) -> tuple[int, bool, str]:
    """Return how often a line is quoted, whether it is blank, and the line without its marks."""
    found = _MARKS.match(line) if ">" in line or "＞" in line else None
    if found is None:
        return 0, not line or line.isspace(), line
    marks, plain = found[0], line[found.end() :]
    depth = marks.count(">")
    return depth + (marks.count("＞") if depth < len(marks) else 0), not plain.strip(), plain


def _join_columns(blocks: Iterator[_Block]) -> Iterator[tuple[str, int, int, int]]:
    """Yield the blocks; columns of one depth that follow each other are one, blank lines too."""
    for (shape, depth), some in groupby(blocks, key=lambda one: (one.shape, one.depth)):
        together = [*some]
        if shape == "columns":
            yield shape, together[0].start, together[-1].end, depth
        else:
            yield from ((shape, one.start, one.end, depth) for one in together)


def find_shape(lines: Sequence[str]) -> str:
    """Return the shape of a paragraph: prose flows, verse has ends on purpose, columns stand."""
    text = "\n".join(lines)
    if _COLUMN_SIGNS.search(text) and _COLUMNS.search(text):
        return "columns"
    flows = all(flows_on(line, after) for line, after in pairwise(lines))
    return "prose" if flows and _begins_prose(lines[0]) else "verse"


def flows_on(line: str, after: str) -> bool:
    """Return whether a line of prose was wrapped: it is long, and the next one goes on."""
    return len(line) >= _WRAPPED and _begins_prose(after)


def _begins_prose(line: str) -> bool:
    return _PROSE.match(line) is not None and not (_ITEM.match(line) or _TRAILER.match(line))


def link_text(text: str, ids: Collection[str]) -> str:
    """Return a text as HTML; URLs and ids of messages are links."""
    pieces: list[str] = []
    at = 0
    for start, end, url in find_links(text, ids):
        if start >= at:
            name = escape(text[start:end])
            pieces += [
                escape(text[at:start]),
                f'<a href="{escape(url)}" rel="nofollow noopener">{name}</a>',
            ]
            at = end
    return "".join([*pieces, escape(text[at:])])


def find_links(text: str, ids: Collection[str]) -> list[tuple[int, int, str]]:
    """Return the start, end and URL of each link of a text, in order; they may overlap."""
    found = []
    for match in _URL.finditer(text):
        url = match.group().rstrip(_AFTER_URL)
        if MASK not in url:  # a masked URL leads elsewhere
            found.append((match.start(), match.start() + len(url), url))
    if any(id in text for id in ids):
        for address in list_addresses(text):
            if address.text in ids:
                found.append((address.start, address.end, page_url("message", address.text)))
    return sorted(found)
