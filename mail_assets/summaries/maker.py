"""Makers of summaries: their contract, and the one that needs no model.

A maker's fingerprint identifies everything that decides what it makes of the same messages; when it
changes, threads are summarized again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mail_assets.errors import MailAssetsError
from mail_assets.summaries.extractive import FINGERPRINT, summarize
from mail_assets.summaries.summary import MessageText, Summary


class SummaryError(MailAssetsError):
    """A thread cannot be summarized; others may be."""


class MakerStoppedError(MailAssetsError):
    """A maker stops for this run: its server cannot be reached, or its budget is used."""


class Usage(NamedTuple):
    """Use of a maker: requests, and tokens as the server counted them.

    `unsupported` counts sentences of a model that their citations do not support.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unsupported: int = 0

    def plus(self, **more: int) -> "Usage":
        """Return this use with some figures increased."""
        return self._replace(**{name: getattr(self, name) + count for name, count in more.items()})


NOTHING = Usage()


class Maker(Protocol):
    """Makes the summary of a thread."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides the summary of the same messages."""

    @property
    def verbatim(self) -> bool:
        """Return whether its sentences are those of the messages."""

    @property
    def portion(self) -> int:
        """Return the characters of mail between two commits."""

    @property
    def stateless(self) -> bool:
        """Return whether it keeps nothing between threads, so that each process may have a copy."""

    @property
    def usage(self) -> Usage:
        """Return its use so far."""

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
