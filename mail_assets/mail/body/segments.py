"""Cut a body into segments: new text, quote, attribution, signature, footer or patch.

The body is never changed. Segments are spans of it, so a chunk can cite exact characters and a
reader can fold quotes. Other libraries that parse replies assume top posting, and cut answers
between quotes. Here a line stays text unless a rule matches it. Diffs are found first, because a
"-- " line inside a diff is code and not a signature separator.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from mail_assets.mail.body.attributions import is_cut
from mail_assets.mail.body.diffs import mark_patches
from mail_assets.mail.body.endings import (
    Ending,
    EndingMatch,
    find_ending_lines,
    hash_ending,
    mark_ending_lines,
)
from mail_assets.mail.body.footers import find_ending_heads, match_disclaimer, match_list_footer
from mail_assets.mail.body.lines import (
    KIND_NAMES,
    QUOTE,
    TEXT,
    BodyLines,
    LineBlock,
    LineRule,
    Segment,
    find_runs,
)
from mail_assets.mail.body.marks import mark_quoted_lines, quotes_mail
from mail_assets.mail.body.quotes import (
    count_unannounced,
    find_mail_head,
    find_quote_heads,
    match_quote_head,
    separator_kind,
)
from mail_assets.mail.body.signatures import (
    mark_sign_offs,
    match_device_signature,
    match_pgp_armour,
    match_signature,
    name_words,
    without_programs_lines,
)

SEGMENTER_VERSION = "17"

#: Number of lines to which the rules apply; later lines are text. A body of the maximum size, a
#: megabyte, usually has 25,000 lines; only hostile mail has more than this limit.
MAX_LINES = 50_000

_KINDS = {name: kind for kind, name in KIND_NAMES.items()}
_TEXTS = re.compile(b"t+")
_QUOTED = re.compile(rb"\x01+")

_RULES: tuple[LineRule, ...] = (
    match_signature,
    match_pgp_armour,
    match_quote_head,
    match_list_footer,
    match_disclaimer,
    match_device_signature,
)


def segment_body(
    body: str,
    from_name: str = "",
    from_email: str = "",
    *,
    answers: bool = True,
) -> list[Segment]:
    r"""Cover the body with segments, without gaps, each ending at a line end ("\n" only).

    The author's name and address identify a sign-off. `answers`: the message answers or forwards
    another. If not, only announced quotes count.
    """
    return _segment(body, name_words(from_name, from_email), answers).parts


def segment_with_ending(
    body: str, from_name: str, from_email: str, *, answers: bool
) -> tuple[list[Segment], Ending]:
    """Return the segments of a body as `segment_body` does, and its ending for `learn_endings`."""
    lines, kinds, parts, is_whole = _segment(body, name_words(from_name, from_email), answers)
    if not is_whole:
        return parts, ending_of(body, parts)
    return parts, hash_ending(lines, find_ending_lines(lines, kinds))


class _Segmented(NamedTuple):
    """Lines to which the rules apply, their kinds, and the segments of the whole body."""

    lines: list[str]
    kinds: bytearray
    parts: list[Segment]
    is_whole: bool  # the body has no other lines


def _segment(body: str, author: frozenset[str], answers: bool) -> _Segmented:
    head = body
    lines = head.split("\n", MAX_LINES)  # splitlines() would also split at U+2028 and others
    if "\n" in lines[-1]:
        head = head[: -len(lines[-1])]
        lines[-1] = ""
    plain = [line.rstrip("\r") for line in lines] if "\r" in head else lines
    marked = BodyLines(head, plain, author)
    _mark_lines(marked, answers)
    mark_sign_offs(marked)
    parts = _merge(head, lines, marked.kinds)
    if len(head) < len(body):
        start = parts.pop().start if parts[-1].kind == "text" else len(head)
        parts.append(Segment(start, len(body), "text"))
    return _Segmented(lines, marked.kinds, parts, len(head) == len(body))


def mark_ending(
    body: str, parts: list[Segment], match: EndingMatch, author: frozenset[str]
) -> list[Segment]:
    """Return the segments of a body with its learnt ending; `parts` are those by the rules alone.

    `author` has the words of the author's name, from `name_words`.
    """
    if not any(match):
        return parts
    lines = body.split("\n")
    kinds = _kinds_of_lines(body, lines, parts)
    mark_ending_lines(lines, kinds, match, author)
    return _merge(body, lines, kinds)


def _merge(body: str, lines: Sequence[str], kinds: bytearray) -> list[Segment]:
    parts = []
    at = 0
    ends = [*accumulate(map(len, lines))]
    for _, stop, kind in find_runs(kinds):
        end = min(ends[stop - 1] + stop, len(body))
        if end > at:  # the last line is empty where the body ends with a line end
            parts.append(Segment(at, end, KIND_NAMES[kind]))
        at = end
    return parts


def ending_of(body: str, parts: Sequence[Segment]) -> Ending:
    """Return the ending of a body for `learn_endings`; `parts` are the segments by the rules."""
    lines = body.split("\n")
    return hash_ending(lines, find_ending_lines(lines, _kinds_of_lines(body, lines, parts)))


def new_text_spans(body: str, parts: Sequence[Segment]) -> list[tuple[int, int]]:
    """Return the spans for the vector index: the segments of text that are not blank."""
    return [
        (s.start, s.end) for s in parts if s.kind == "text" and not body[s.start : s.end].isspace()
    ]


def readable_text(body: str, parts: Sequence[Segment]) -> str:
    """Return the text for the word index: new text and signatures.

    Quotes are found in the message that they come from, and patches by their names. Text that
    programs add to every mail, such as PGP armour and the signature of a phone, would only be
    noise.
    """
    texts = []
    for start, end, kind in parts:
        if kind == "text":
            texts.append(body[start:end])
        elif kind == "signature":
            texts.append(without_programs_lines(body[start:end]))
    return "".join(texts)


def _mark_lines(body: BodyLines, answers: bool) -> None:
    mark_patches(body)
    body.find_signs()
    mark_quoted_lines(body, answers=answers)
    quoted, patched = body.quoted, body.kinds[:]
    answers = answers or (1 in quoted and quotes_mail(body))
    _set_quotes(body)
    own = _own_lines(body)
    heads = find_quote_heads(body, own, answers)
    if not answers and 1 in quoted:
        unannounced = count_unannounced(heads, quoted)
        quoted[:unannounced] = bytes(unannounced)
        body.kinds = patched
        _set_quotes(body)
        own = _own_lines(body)
    body.first_quote, body.quote_heads = quoted.find(1), heads
    _mark_blocks(body, sorted({*heads, *find_ending_heads(body.texts, own)}))


def _set_quotes(body: BodyLines) -> None:
    for run in _QUOTED.finditer(body.quoted):
        start, stop = run.span()
        body.kinds[start:stop] = bytes((QUOTE,)) * (stop - start)


def _own_lines(body: BodyLines) -> list[int]:
    """Return the visible lines that are neither quoted nor of a diff."""
    texts = body.texts
    runs = (range(*run.span()) for run in _TEXTS.finditer(body.kinds))
    return [i for run in runs for i in run if texts[i]]


def _mark_blocks(body: BodyLines, candidates: list[int]) -> None:
    done = 0
    for i in candidates:
        if i < done or body.kinds[i] != TEXT:
            continue
        body.text_above = body.text_above or body.has_text(done, i)
        block = _match_rules(body, i)
        if block is None:
            done = i
            continue
        body.fill(i, block)
        done = block.stop
        if block.quotes_rest:
            body.fill(done, LineBlock(len(body.lines), QUOTE))
            break


def quote_mail_below(body: str, parts: Sequence[Segment]) -> list[Segment]:
    """Return segments for readers: all mail below an Outlook header block is a quote.

    Outlook puts the answered message below the answer without marks; only older quotes in it are
    marked. For an index the unmarked lines are text, because some people answer between them. On a
    page they would be attributed to the wrong author. If the first line below the block is marked,
    the marks are right and nothing changes.
    """
    has_above = False
    for part in parts:
        text = body[part.start : part.end]
        is_place = part.kind in ("attribution", "text")
        found = find_mail_head(text, has_above) if is_place else None
        has_above = has_above or (part.kind == "text" and text.strip() != "")
        if found is None:
            continue
        start, end = (part.start + at for at in found)
        below = [one._replace(start=max(end, one.start)) for one in parts if one.end > end]
        first = next((one for one in below if body[slice(*one[:2])].strip()), None)
        if first is None or first.kind == "quote":
            return [*parts]
        last = below.pop() if below[-1].kind == "footer" else None
        rest = Segment(end, last.start if last else len(body), "quote")
        above = [one._replace(end=min(start, one.end)) for one in parts if one.start < start]
        return [*above, Segment(start, end, "attribution"), rest, *([last] if last else [])]
    return [*parts]


def own_parts(body: str, parts: Sequence[Segment]) -> list[Segment]:
    """Return the segments that the author wrote, without forwarded and attached mail.

    Text right below an attribution or a header block is by somebody else. So is all text below a
    separator of forwarded mail, up to the line that announces its end.
    """
    own: list[Segment] = []
    is_own, above = True, ""
    for part in parts:
        text = body[part.start : part.end]
        kind = part.kind if text.strip() else ""
        if kind == "text" and above == "attribution" and is_cut(text):
            kind = ""
        if kind == "attribution":
            said = text.strip().split("\n")
            ends = separator_kind(said[-1]) == "forwarded_end"
            is_own = ends or (is_own and separator_kind(said[0]) != "forwarded")
            kind = "end" if ends else kind
        elif kind == "text":
            is_own = is_own and above != "attribution"
            if is_own and (head := find_mail_head(text, has_above=True, dated=False)):
                own.append(part._replace(end=part.start + head[0]))
                part = part._replace(start=part.start + head[1])
                is_own, kind = not text[head[1] :].strip(), "attribution"
        above = kind or above
        if is_own:
            own.append(part)
    return own


def _kinds_of_lines(body: str, lines: Sequence[str], parts: Sequence[Segment]) -> bytearray:
    kinds = bytearray()
    last = bytes((TEXT,))
    for part in parts:
        last = bytes((_KINDS[part.kind],))
        kinds += last * body.count("\n", part.start, part.end)
    # the last line has no line end; it is empty where the body ends with one
    return kinds + last * (len(lines) - len(kinds))


def _match_rules(body: BodyLines, i: int) -> LineBlock | None:
    for rule in _RULES:
        block = rule(body, i)
        if block is not None:
            return block
    return None


def own_body(body: str, attached: Sequence[tuple[int, int]]) -> str:
    """Return the body without the texts of attached messages."""
    return body[: attached[0][0]] if attached else body


def segment_with_attached(
    body: str, attached: Sequence[tuple[int, int]], own: Sequence[Segment] | None = None
) -> list[Segment]:
    """Cover a body that ends in attached messages with segments, like `segment_body`.

    `own` are the segments of the message's own body, if known. `attached` has, for each attached
    message, its start and the start of its text. The first line between the two is a separator; the
    other lines give author, date and subject and are text.
    """
    parts = [*(own or segment_body(own_body(body, attached)))]
    if not attached:
        return parts
    stops = [start for start, _ in attached[1:]] + [len(body)]
    for (start, text_start), stop in zip(attached, stops, strict=True):
        inner = segment_body(body[text_start:stop])
        line = body.index("\n", start) + 1
        parts += [Segment(start, line, "attribution"), Segment(line, text_start, "text")]
        parts += [Segment(s.start + text_start, s.end + text_start, s.kind) for s in inner]
    return _join_equal(parts)


def _join_equal(parts: Sequence[Segment]) -> list[Segment]:
    joined: list[Segment] = []
    for part in parts:
        if joined and joined[-1].kind == part.kind:
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined
