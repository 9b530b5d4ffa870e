"""The stream of a chat model's answer: whether it is a refusal, then its checked text.

Only what was checked is shown: a citation of an excerpt that does not exist never is, and an answer
that broke off says so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.prompt import INSUFFICIENT
from mail_assets.openai.errors import EndpointError

#: What some models write around the mark, and what of it is left behind.
_DECORATION = re.compile(r"[\s*_#>\"']")
_BEHIND = re.compile(r"[*_]*\s*")


class AnswerStream:
    """Reads an answer as it arrives; `fault` is why it broke off, or ""."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.citations = CitationFilter(numbers)
        self.refused = False
        self.fault = ""

    def read(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield what can be shown, to the end or until the server fails.

        Raises:
            EndpointError: the server failed before the first word.
        """
        said = False
        try:
            for text in self._read_mark(texts):
                said = said or bool(text.strip())
                if checked := self.citations.feed(text):
                    yield checked
        except EndpointError as error:
            if not said:
                raise
            self.fault = str(error)
        if rest := self.citations.finish():
            yield rest
        if not (said or self.refused):
            self.fault = self.fault or "the model answered nothing"

    def _read_mark(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts without the mark of a refusal, which is noted."""
        head: str | None = ""
        try:
            for text in texts:
                if head is None:
                    yield text
                    continue
                head = self._take_mark(head + text)
                if shown := self._begin(head):
                    yield shown
                    head = None
        except EndpointError:
            yield self._rest(head)
            raise
        yield self._rest(head)

    def _take_mark(self, head: str) -> str:
        """Return the beginning of an answer without the mark, which is noted."""
        if self.refused or not _bare(head).startswith(INSUFFICIENT):
            return head
        self.refused = True
        return head.partition(":")[2]

    def _begin(self, head: str) -> str:
        """Return the beginning of an answer once it can be shown, else ""."""
        if self.refused:
            return _BEHIND.sub("", head, count=1)
        return "" if INSUFFICIENT.startswith(_bare(head)) else head

    def _rest(self, head: str | None) -> str:
        """Return what was held back, at the end of the answer."""
        return "" if self.refused else head or ""


def _bare(head: str) -> str:
    return _DECORATION.sub("", head).upper()
