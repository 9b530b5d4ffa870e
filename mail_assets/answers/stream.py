"""The stream of a chat model's answer: whether it is a refusal, then its checked text.

Only what was checked is shown: a citation of an excerpt that does not exist never is, and an answer
that broke off says so.
"""

from collections.abc import Iterable, Iterator, Sequence

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.prompt import INSUFFICIENT
from mail_assets.openai.errors import EndpointError

#: What some models write before a first word.
_DECORATION = " \n*_#>\"'"


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
                head += text
                first = head.lstrip(_DECORATION)
                if not INSUFFICIENT.startswith(first[: len(INSUFFICIENT)]):
                    yield head
                    head = None
                elif len(first) >= len(INSUFFICIENT):
                    self.refused = True
                    yield first[len(INSUFFICIENT) :].lstrip()
                    head = None
        except EndpointError:
            yield head or ""
            raise
        yield head or ""
