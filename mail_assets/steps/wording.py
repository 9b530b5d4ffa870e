"""What the mail of a list is written in, as its rows depend on it."""

from typing import NamedTuple


class Wording(NamedTuple):
    """A text search configuration, and the charset of mail that names none; "": not known."""

    language: str
    charset: str = ""

    def __str__(self) -> str:
        """Return it as it stands in the inputs of a month: one word."""
        return f"{self.language}/{self.charset}" if self.charset else self.language
