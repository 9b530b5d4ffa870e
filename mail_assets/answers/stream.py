"""The stream of a chat model's answer: whether it is a refusal, then its checked text.

Only what was checked is shown: a citation of an excerpt that does not exist never is, and an answer
that broke off says so.
"""

from collections.abc import Callable, Iterable, Sequence

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.prompt import INSUFFICIENT
from mail_assets.openai.errors import EndpointError

#: Shows a piece of the answer.
ShowText = Callable[[str], None]

#: What some models write before a first word.
_DECORATION = " \n*_#>\"'"


class AnswerStream:
    """Reads an answer as it arrives; `text` is what was shown, `fault` why it broke off, or ""."""

    def __init__(self, numbers: Sequence[int], show: ShowText) -> None:
        self.citations = CitationFilter(numbers)
        self.refused = False
        self.text = ""
        self.fault = ""
        self._show = show

    def read(self, texts: Iterable[str]) -> None:
        """Read to the end, or until the server fails.

        Raises:
            EndpointError: the server failed before the first word.
        """
        head: str | None = ""
        try:
            for text in texts:
                if head is None:
                    self._give(self.citations.feed(text))
                    continue
                head += text
                first = head.lstrip(_DECORATION)
                if not INSUFFICIENT.startswith(first[: len(INSUFFICIENT)]):
                    self._give(self.citations.feed(head))
                    head = None
                elif len(first) >= len(INSUFFICIENT):
                    self.refused = True
                    self._give(self.citations.feed(first[len(INSUFFICIENT) :].lstrip()))
                    head = None
        except EndpointError as error:
            if not (self.text or head):
                raise
            self.fault = str(error)
        self._give(self.citations.feed(head or ""))
        self._give(self.citations.finish())
        if not (self.text.strip() or self.refused):
            self.fault = self.fault or "the model answered nothing"

    def _give(self, text: str) -> None:
        if text:
            self.text += text
            self._show(text)
