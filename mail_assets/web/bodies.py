"""Bodies of messages as HTML: text and quotes, paragraphs and columns, links.

Text is escaped block by block. A thread of fifty messages has a few thousand lines, and a template
for each line would be the slowest part of a page. No other module builds markup.

On a narrow screen paragraphs are wrapped; lines in columns are scrolled instead.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import quote_mail_below
from mail_assets.mail.message.text_addresses import MASK, list_addresses
from mail_assets.text.untrusted import TURNS, show_turns
from mail_assets.web.requests import page_url

#: A URL to link: without a user name before the host, and without characters that change the
#: direction of text. Its path may contain a Message-ID.
_URL = re.compile(rf"https?://[^\s<>\"'`@/{TURNS}]++(?!@)(?:/[^\s<>\"'`{TURNS}]*+)?")
#: Punctuation that does not belong to the URL before it.
_AFTER_URL = ".,;:!?)]}"
#: Most lines of a quote and of a signature that are not folded (RFC 3676, 4.3, expects signatures
#: of up to four lines).
OPEN = {"quote": 12, "signature": 4}
#: Columns of the widest line that fits on a desktop screen eight levels deep in a thread.
WIDE = 76
#: Kinds of segments that are shown like another kind.
_SHOWN_AS = {"attribution": "quote", "footer": "signature"}
#: A line: its quote marks, if any, and the rest.
_MARKED_LINE = re.compile(r"^([ \t]{0,3}+[>＞](?:[ \t]?[>＞])*+[ \t]?|)([^\n]*+)", re.MULTILINE)
#: Fewest characters of a line that was wrapped; a shorter one ends on purpose.
_WRAPPED = 45
#: The beginning of a line of prose: no list, prompt, rule or indentation, and no trailer of a
#: commit such as "Reviewed-by: Bo".
_PROSE = re.compile(
    r"(?!\(?\w{1,2}[.)]\s)"
    r"(?!(?:[A-Z][a-z]++(?:-[A-Za-z]++)++|Cc|Link|Fixes|Closes|Bug): )"
    r"[\w\"'(\[“‘¿¡«„…](?<!_)"
)
#: Signs of columns or code: a wide gap, a tab, the end of a statement; at the beginning of a line a
#: prompt or a bar. Each pattern begins with characters that are found fast, and takes the rest of
#: the line.
_COLUMN_SIGNS = (
    re.compile(r"  (?:(?<=[^\s.!?:]  )(?=\S)|(?<=\S  ) ++(?=\S))[^\n]*+"),
    re.compile(r"\t(?<=\S\t)\S[^\n]*+"),
    re.compile(r"[;{}\\][^\S\n]*+$", re.MULTILINE),
    re.compile(r"\n(?:[$#]|[^\S\n]*+(?:[|+]|\.\.\.|>>>|[$#] )|[A-Za-z][\w.-]*+[$#>] )"),
)
_BOX_SIGN = re.compile(r"[\u2500-\u259f]")
#: The indentation of code, after the first line of a paragraph.
_INDENTED = re.compile(r"\n(?: {4}|\t)")
_MARKS_OF_PATCH = {"+": "added", "-": "removed", "@": "place"}
_FILE_LINES = ("diff --git ", "--- ", "+++ ")


class Part(NamedTuple):
    """A part of a body: text, quote, patch or signature.

    An attribution belongs to its quote, a footer to the signature before it.
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
        """True if the page shows it only on demand."""
        return self.lines > OPEN.get(self.kind, self.lines)

    @property
    def opening(self) -> str:
        """The first line that has more than a rule or a quote mark."""
        lines = (line.strip("> ") for line in self.text.split("\n"))
        return next((line for line in lines if line.strip("_-=*> ")), "")


def view_body(document: Mapping[str, Any], mentions: Collection[str]) -> list[Part]:
    """Return the parts of the body of a message or post; `mentions` are ids that become links."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, mentions)]


def split_parts(text: str, segments: Sequence[Segment], ids: Collection[str]) -> Iterator[Part]:
    """Yield the parts of a body in order; `ids` are Message-IDs that become links."""
    here = [id for id in ids if id in text]
    spans = quote_mail_below(text, segments or [Segment(0, len(text), "text")])
    shown = [
        (_SHOWN_AS.get(kind, kind), text[start:end])
        for start, end, kind in spans
        if text[start:end].strip()  # blank lines do not separate an attribution from its quote
    ]
    for kind, some in groupby(shown, key=lambda one: one[0]):
        joined = "".join(part for _, part in some).strip("\n")
        yield Part(kind, joined, _write(kind, joined, here))


def _write(kind: str, text: str, ids: Collection[str]) -> Markup:
    if kind == "patch":
        code = show_turns(text)
        return _write_patch(code.split("\n"), link_text(code, ids).split("\n"))
    html = link_text(text, ids).split("\n")
    return Markup("\n".join(_write_blocks(kind, text, html)))


def _write_patch(lines: Sequence[str], html: Sequence[str]) -> Markup:
    marked = []
    for at, (line, one) in enumerate(zip(lines, html, strict=True)):
        name = _MARKS_OF_PATCH.get(line[:1], "")
        if line.startswith(_FILE_LINES):
            name = _name_file_line(lines, at) or name
        # "---" comes before the list of files
        marked.append(f'<span class="{name}">{one}</span>' if name and line != "---" else one)
    opening = f'<pre class="patch" dir="auto"{_reach(lines)}>'
    return Markup(opening + "\n".join(marked) + "</pre>")


def _name_file_line(lines: Sequence[str], at: int) -> str:
    """Return the CSS class of a line that names a file of a patch; "" for a changed line."""
    if lines[at].startswith("diff --git "):
        return "file"
    above, below = (lines[one][:4] if 0 <= one < len(lines) else "" for one in (at - 1, at + 1))
    own = lines[at][:4]
    return "file" if "--- +++ " in (own + below, above + own) else ""


def _reach(lines: Sequence[str]) -> str:
    """Return the attribute that makes lines wider than a page reachable by keyboard."""
    is_wide = any(
        len(line) > WIDE or ("\t" in line and len(line.expandtabs(8)) > WIDE) for line in lines
    )
    return ' tabindex="0"' if is_wide else ""


class _Block(NamedTuple):
    """Lines `start` to `end` of a part: a paragraph or columns, quoted `depth` times."""

    shape: str
    depth: int
    start: int
    end: int


def _write_blocks(kind: str, text: str, html: Sequence[str]) -> Iterator[str]:
    marks, lines = _unmark(kind, text)
    for shape, depth, start, end in _join_columns(_find_blocks(marks, lines)):
        shown = html[start:end]
        if depth and shape == "prose":  # elsewhere the marks stay: lines do not flow
            shown = [*map(_wrap_marks, marks[start:end], shown)]
        names = f"{kind} {shape}" + (f" depth-{min(depth, 3)}" if depth else "")
        tag, reach = "p", ""
        if shape == "columns":
            tag, reach = "pre", _reach([*map(str.__add__, marks[start:end], lines[start:end])])
        body = "\n".join(shown)
        yield f'<{tag} class="{names}" dir="auto"{reach}>{body}</{tag}>'


def _wrap_marks(marks: str, html: str) -> str:
    escaped = marks.replace(">", "&gt;")  # they have no other sign of HTML
    return f'<span class="mark">{escaped}</span>{html[len(escaped) :]}'


def _unmark(kind: str, text: str) -> tuple[list[str], list[str]]:
    """Return the quote marks of each line, and the lines without them.

    Outside quotes the marks stay in the lines, because nothing else would show them.
    """
    if kind == "quote":
        found = _MARKED_LINE.findall(text)
        return [marks for marks, _ in found], [line for _, line in found]
    lines = text.split("\n")
    return [""] * len(lines), lines


def _find_blocks(marks: Sequence[str], lines: Sequence[str]) -> Iterator[_Block]:
    """Yield the paragraphs: lines between blank lines, with one quote depth."""
    text = "\n".join(["", *lines])
    signs = _number_lines(text, _COLUMN_SIGNS if text.isascii() else (*_COLUMN_SIGNS, _BOX_SIGN))
    indented = _number_lines(text, (_INDENTED,))
    start = 0
    for depth, some in groupby(map(_count_marks, marks, lines)):
        end = start + len([*some])
        if depth is not None:
            stands = not (
                (not signs or signs.isdisjoint(range(start, end)))
                and (not indented or indented.isdisjoint(range(start + 1, end)))
            )
            shape = "columns" if stands else _find_shape(lines[start:end])
            yield _Block(shape, depth, start, end)
        start = end


def _count_marks(marks: str, line: str) -> int | None:
    """Return the quote depth of a line, or None for a blank line."""
    if not line or line.isspace():
        return None
    return marks.count(">") + (0 if marks.isascii() else marks.count("＞"))


def _number_lines(text: str, patterns: Iterable[re.Pattern[str]]) -> set[int]:
    """Return the numbers of the lines in which matches end; `text` must begin with a line end."""
    numbers = set()
    for pattern in patterns:
        number, last = -1, 0
        for match in pattern.finditer(text):
            number += text.count("\n", last, match.end())
            last = match.end()
            numbers.add(number)
    return numbers


def _join_columns(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Join consecutive columns of one depth into one block, with blank lines between them."""
    for (shape, _), some in groupby(blocks, key=itemgetter(0, 1)):
        if shape == "columns":
            first, *others = some
            yield first._replace(end=others[-1].end) if others else first
        else:
            yield from some


def _find_shape(lines: Sequence[str]) -> str:
    """Return the shape of a paragraph: prose can be wrapped again, verse keeps its line ends."""
    flows = all(len(line) >= _WRAPPED for line in lines[:-1]) and all(map(_PROSE.match, lines))
    return "prose" if flows else "verse"


def flows_on(line: str, after: str) -> bool:
    """Return whether a line of prose was wrapped: it is long, and the next line continues it."""
    return len(line) >= _WRAPPED and _PROSE.match(after) is not None


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
        if MASK not in url:  # a masked URL would lead to the wrong place
            found.append((match.start(), match.start() + len(url), url))
    if any(id in text for id in ids):
        for address in list_addresses(text):
            if address.text in ids:
                found.append((address.start, address.end, page_url("message", address.text)))
    return sorted(found)
