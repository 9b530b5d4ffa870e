"""The contract of a vector bucket: a place for vector indexes."""

from typing import Protocol

from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.spec import IndexSpec


class Bucket(Protocol):
    """A place for vector indexes, whatever the backend."""

    where: str  # for messages, without credentials

    def index(self, spec: IndexSpec) -> VectorIndex:
        """Return the index of `spec`; call its `ensure` before the first use."""

    def indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
