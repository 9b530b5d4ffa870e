"""Segments of a body that ends in the texts of attached messages, each a body of its own."""

from collections.abc import Sequence

from mail_assets.mail.body.segments import Segment, segment_body


def own_body(body: str, attached: Sequence[tuple[int, int]]) -> str:
    """Return the body without the texts of attached messages."""
    return body[: attached[0][0]] if attached else body


def segment_with_attached(
    body: str, attached: Sequence[tuple[int, int]], own: Sequence[Segment] | None = None
) -> list[Segment]:
    """Cover the body with segments, as segment_body() does.

    own are the segments of the message's own body, where they are known.

    attached says of each attached message where it begins, and where its text does: the lines
    between name its author, date and subject and are text.
    """
    parts = [*(own or segment_body(own_body(body, attached)))]
    if not attached:
        return parts
    stops = [start for start, _ in attached[1:]] + [len(body)]
    for (start, text_start), stop in zip(attached, stops, strict=True):
        inner = segment_body(body[text_start:stop])
        head = [Segment(start, text_start, "text")] if text_start > start else []
        parts += head + [Segment(s.start + text_start, s.end + text_start, s.kind) for s in inner]
    return _join_equal(parts)


def _join_equal(parts: Sequence[Segment]) -> list[Segment]:
    """The segments, those of one kind that follow one another as one."""
    joined: list[Segment] = []
    for part in parts:
        if joined and joined[-1].kind == part.kind:
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined
