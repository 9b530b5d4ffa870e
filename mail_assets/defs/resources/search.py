"""Search as a resource: thin, and safe to hand to any op or asset."""

from contextlib import AbstractContextManager
from pathlib import Path

import dagster as dg
from pydantic import Field

from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.defs.resources.words import WordsResource
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.tables.indexes import IndexRecord


class SearchResource(dg.ConfigurableResource):
    """Answers queries over the live index."""

    database: DatabaseResource
    vector_bucket: VectorBucketResource
    words: WordsResource
    encoder: EncoderResource
    languages: dict[str, str] = Field(description="list -> text search configuration")

    @property
    def vectors(self) -> str:
        """The URL of the bucket."""
        return self.vector_bucket.url

    def open(self) -> AbstractContextManager[Searcher]:
        """Open a searcher; the model is loaded by its first semantic query."""
        encoder = self.encoder
        return open_searcher(self._settings(self.vectors, encoder.name, encoder.precision))

    def open_index(self, bucket: str, index: IndexRecord) -> AbstractContextManager[Searcher]:
        """Open a searcher over one index of a bucket, live or not."""
        return open_searcher(self._settings(bucket, index.encoder, index.precision), pinned=True)

    def _settings(self, bucket: str, encoder: str, precision: str) -> SearchSettings:
        return SearchSettings(
            self.database.database,
            bucket,
            self.words.url,
            encoder,
            precision,
            Path(self.encoder.cache),
            self.languages,
        )
