"""What pruning removed, or would remove."""

from typing import NamedTuple


class Pruned(NamedTuple):
    """How many things of a kind go, and their bytes; None where nobody can tell."""

    what: str
    things: int
    bytes: int | None
