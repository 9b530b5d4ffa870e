"""One thing that is wrong with a home."""

from typing import NamedTuple


class Finding(NamedTuple):
    """What is wrong, where, and the command that mends it."""

    problem: str
    where: str
    remedy: str
