"""A message as a summary sees it."""

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise

from mail_assets.mail.body.segments import Segment


@dataclass(frozen=True)
class MessageText:
    """An archived message of a thread; ghosts have no text and are left out.

    parent_id is the nearest archived ancestor. segments are spans in characters of body.
    """

    message_id: str
    author: str
    sent_at: dt.datetime
    parent_id: str | None
    subject: str
    body: str
    segments: tuple[Segment, ...]
    patch_attached: bool = False

    @property
    def new_text(self) -> list[tuple[int, int]]:
        """The spans that the author wrote for this message."""
        return [(part.start, part.end) for part in self.segments if part.kind == "text"]

    @property
    def answered_quotes(self) -> list[tuple[int, int]]:
        """The spans of quotes with an answer right below."""
        return [
            (part.start, part.end)
            for part, below in pairwise(self.segments)
            if part.kind == "quote" and below.kind == "text"
        ]

    @property
    def has_patch(self) -> bool:
        """Whether the body holds a diff, or a patch is attached."""
        return self.patch_attached or any(part.kind == "patch" for part in self.segments)
