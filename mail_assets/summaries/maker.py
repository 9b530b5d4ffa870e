"""What makes summaries: the interface of its two makers, and the one that needs no model.

A maker's fingerprint is everything that decides what it makes of the same messages; a thread is
summarized again where it is another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mail_assets.errors import MailAssetsError
from mail_assets.summaries.extractive import FINGERPRINT, summarize
from mail_assets.summaries.summary import MessageText, Summary


class SummaryError(MailAssetsError):
    """A thread could not be summarized: says why. Others may be."""


class MakerStoppedError(MailAssetsError):
    """A maker can make no more in this run: its server is out of reach, or its budget is used."""


class Usage(NamedTuple):
    """What a maker has used: requests, tokens as the server counted them.

    `unsupported` counts sentences of a model that their citations do not support.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unsupported: int = 0

    def plus(self, **more: int) -> "Usage":
        """Return this and more of some figures."""
        return self._replace(**{name: getattr(self, name) + count for name, count in more.items()})


#: What a maker without a server has used.
NOTHING = Usage()


class Maker(Protocol):
    """Makes the summary of a thread."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what it makes of the same messages."""

    @property
    def verbatim(self) -> bool:
        """Whether its sentences are those of the messages."""

    @property
    def portion(self) -> int:
        """Characters of mail between two commits."""

    @property
    def stateless(self) -> bool:
        """Whether it keeps nothing between threads, so that each process may have a copy of it."""

    @property
    def usage(self) -> Usage:
        """What it has used so far."""

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        """Return the summary of the archived messages of a thread, given in the thread's order.

        Raises:
            SummaryError: this thread cannot be summarized.
            MakerStoppedError: no thread can be, for now.
        """


@dataclass(frozen=True)
class ExtractiveMaker:
    """Chooses sentences of the thread itself."""

    fingerprint: str = FINGERPRINT
    verbatim: bool = True
    portion: int = 4_000_000
    stateless: bool = True
    usage: Usage = NOTHING

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        """Return the summary of the archived messages of a thread."""
        return summarize(messages)
