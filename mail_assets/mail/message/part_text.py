"""The visible text of a part: plain, enriched, HTML or a calendar, as a reader would see it."""

from typing import NamedTuple

from mail_assets.mail.message.calendar_text import calendar_to_text
from mail_assets.mail.message.enriched import enriched_to_text
from mail_assets.mail.message.html import MAX_HTML, html_to_text
from mail_assets.mail.message.part import Part
from mail_assets.mail.message.part_content import decode_part_text

# Media type -> the kind of text that can be read from it, the best first.
KINDS = {
    "text/plain": "plain",
    "text/markdown": "plain",
    "text/x-markdown": "plain",
    "application/pgp": "plain",
    "text/enriched": "enriched",
    "text/richtext": "enriched",
    "text/html": "html",
    "text/calendar": "calendar",
}


class PartText(NamedTuple):
    """Visible text, and whether it was cut."""

    kind: str  # plain, enriched, html or calendar
    text: str
    capped: bool


class PartReader:
    """Reads parts of one message, of at most MAX_HTML characters of HTML together.

    `usual` is the charset of its list. `guessed` says that the charset of a part had to be guessed.
    """

    def __init__(self, usual: str = "") -> None:
        self._usual, self.guessed = usual, False
        self._room = MAX_HTML

    def read(self, part: Part) -> PartText:
        """The visible text of the part; "" where all of it is blank."""
        kind = KINDS.get(part.type, "plain")
        text, capped, guessed = decode_part_text(part, self._usual)
        self.guessed = self.guessed or guessed
        if kind == "html":
            capped = capped or len(text) > self._room
            text = text[: self._room]
            self._room -= len(text)
            text = html_to_text(text)
        elif kind == "enriched":
            text = enriched_to_text(text)
        elif kind == "calendar":
            text = calendar_to_text(text)
        return PartText(kind, "" if text.isspace() else text, capped)
