"""Runs of lines of one kind."""

from collections.abc import Iterator, Sequence
from itertools import groupby


def find_runs(kinds: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the runs of lines of one kind: the first line, the one behind the last, the kind."""
    start = 0
    for kind, same in groupby(kinds):
        stop = start + len(list(same))
        yield start, stop, kind
        start = stop
