"""Match what announces a quote: attributions, header blocks, separators.

A quote without quote marks is known only by what announces it.
"""

from bisect import bisect

from mail_assets.mail.body.attributions import find_attributions, find_unmarked_attributions
from mail_assets.mail.body.header_blocks import find_header_blocks
from mail_assets.mail.body.line_rule import BodyLines, LineBlock, QuoteHead


def find_quote_heads(lines: list[str], own: list[int], quoted: bytearray) -> dict[int, QuoteHead]:
    """Return what could announce a quote or a forwarded message, by its first line.

    own: the visible lines that are neither quoted nor of a diff.
    """
    last_quoted = quoted.rfind(1)
    unmarked = find_unmarked_attributions(lines, own[bisect(own, last_quoted) :])
    marked = find_attributions(lines, quoted)
    heads = {start: QuoteHead(stop, "unmarked") for start, stop in unmarked.items()}
    heads |= {start: QuoteHead(stop, "attribution") for start, stop in marked.items()}
    return heads | find_header_blocks(lines, own, quoted)


def match_quote_head(body: BodyLines, i: int) -> LineBlock | None:
    """An attribution, header block or separator; above unmarked quotes all the rest is a quote.

    It is if text stands above, which answers it, and no marked quote below. Without text above a
    header block is a forwarded message, as it is where a separator says so: what is forwarded is
    new to the list and stays text. The same fields under git's magic line begin a commit message.
    """
    head = body.quote_heads.get(i)
    if head is None or head.kind == "text":
        return None
    if head.kind in {"original", "unmarked"}:
        all_unmarked = body.quoted.find(1, i) < 0
        if body.text_above and all_unmarked and body.next_visible(head.stop) < len(body.lines):
            return LineBlock(head.stop, "attribution", quotes_rest=True)
        if head.kind == "unmarked":
            return None
    return LineBlock(head.stop, "attribution")
