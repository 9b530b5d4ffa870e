"""Maintain an index while it is being filled, so that it stays quick through a long backfill."""

from typing import Protocol

from mail_assets.tables.partitions import Partition, locked_if_free
from mail_assets.vectors.errors import VectorError
from mail_assets.words.errors import WordsError
from mail_assets.workspace import Workspace


class Maintained(Protocol):
    """An index of vectors or of words, as its upkeep needs it."""

    label: str

    def needs_upkeep(self) -> bool:
        """Tell whether much was written since the last upkeep."""

    def catch_up(self) -> None:
        """Index what is new, in as little time as it takes."""

    def maintain(self) -> None:
        """Bring its search structures up to date."""


def maintain_if_due(workspace: Workspace, index: Maintained) -> bool:
    """Maintain an index that much was written to since the last time; return whether it was done.

    One process does it, and others write meanwhile. A month that is written is done whether this
    works or not: what fails is logged, and tried again after the next month.
    """
    try:
        if not index.needs_upkeep():
            return False
        upkeep = Partition(f"upkeep of {index.label}", None)
        with locked_if_free(workspace.connection, upkeep) as free:
            if free:
                workspace.log(f"maintaining {index.label}")
                index.catch_up()
        return free
    except (VectorError, WordsError) as error:
        workspace.log(f"not maintained, which is tried again: {error}")
        return False
