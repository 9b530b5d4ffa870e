"""What pruning removed, or would remove, and for how long it keeps everything."""

from typing import NamedTuple

#: Days that everything is kept: unless somebody says otherwise, and at least.
KEEP_DAYS, LEAST_DAYS = 90, 30


class Pruned(NamedTuple):
    """How many things of a kind go, and their bytes; None where nobody can tell."""

    what: str
    things: int
    bytes: int | None
