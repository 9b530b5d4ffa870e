"""A bucket of LanceDB tables: a folder, or a prefix on S3-like storage."""

from __future__ import annotations

from collections.abc import Mapping

from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.lance.index import LanceIndex
from mail_assets.vectors.spec import IndexSpec


class LanceBucket:
    """A folder, or a prefix of an S3-like bucket, with one Lance table for each index."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.where = f"lance:{uri}"
        with lance_errors(self.where, VectorError):
            self._connection = LanceConnection(uri, storage_options)

    def index(self, spec: IndexSpec) -> LanceIndex:
        """Return the index of `spec`; nothing is read yet."""
        return LanceIndex(spec, self._connection, self.where)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes."""
        with lance_errors(self.where, VectorError):
            return self._connection.list_tables()
