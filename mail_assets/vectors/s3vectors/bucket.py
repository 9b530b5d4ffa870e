"""A vector bucket of AWS S3 Vectors or of Supabase."""

from __future__ import annotations

from contextlib import suppress

from mail_assets.vectors.errors import MissingIndexError
from mail_assets.vectors.s3vectors.client import BotoClient, boto_errors
from mail_assets.vectors.s3vectors.index import S3VectorsIndex
from mail_assets.vectors.spec import IndexSpec


class S3VectorsBucket:
    """A vector bucket reached through `client`; made by the first `ensure` if it is missing."""

    def __init__(self, client: BotoClient, name: str, where: str) -> None:
        self._client = client
        self._name = name
        self.where = where

    def index(self, spec: IndexSpec) -> S3VectorsIndex:
        """Return the index of `spec`; nothing is sent yet."""
        return S3VectorsIndex(spec, self._client, self._name, self.where)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes, none where there is no bucket yet."""
        pages = self._client.get_paginator("list_indexes").paginate(vectorBucketName=self._name)
        with suppress(MissingIndexError), boto_errors(self.where):
            return sorted(index["indexName"] for page in pages for index in page["indexes"])
        return []
