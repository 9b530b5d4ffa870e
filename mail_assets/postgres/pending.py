"""Answers of statements that are sent now and read later, in one round trip with others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@dataclass(frozen=True)
class Pending(Generic[T_co]):
    """The answer of a statement that was sent in a pipeline.

    `read` returns it. Read after the pipeline has ended: within it, the first answer that is read
    costs a round trip of its own.
    """

    read: Callable[[], T_co]

    @staticmethod
    def known(value: U) -> "Pending[U]":
        """Return an answer that needs no statement."""
        return Pending(lambda: value)

    def then(self, convert: Callable[[T_co], U]) -> "Pending[U]":
        """Return what `convert` makes of the answer once it is read."""
        return Pending(lambda: convert(self.read()))
