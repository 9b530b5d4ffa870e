"""Runs of lines of one kind."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple


class Run(NamedTuple):
    """The lines from start up to stop, all of one kind."""

    start: int
    stop: int
    kind: str


def find_runs(kinds: Sequence[str]) -> Iterator[Run]:
    """Yield the runs of lines of one kind, which cover all lines."""
    start = 0
    for kind, same in groupby(kinds):
        stop = start + len(list(same))
        yield Run(start, stop, kind)
        start = stop
