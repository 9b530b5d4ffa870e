"""Search as a resource: thin, and safe to hand to any op or asset."""

from contextlib import AbstractContextManager
from pathlib import Path

import dagster as dg
from pydantic import Field

from mail_assets.search.searcher import Searcher, open_searcher
from mail_assets.store.indexes import MadeIndex


class SearchResource(dg.ConfigurableResource):
    """Answers queries over the live index."""

    home: str = Field(description="MAIL_HOME")
    dsn: str = Field(default="", description="MAIL_PG_DSN; empty for the embedded server")
    vectors: str = Field(description="MAIL_VECTORS")
    name: str = Field(description="MAIL_ENCODER")
    precision: str = Field(description="MAIL_PRECISION")
    cache: str = Field(description="where prepared ONNX files are kept")
    languages: dict[str, str] = Field(description="list -> text search configuration")

    def open(self) -> AbstractContextManager[Searcher]:
        """Open a searcher; the model is loaded by its first semantic query."""
        return open_searcher(
            Path(self.home),
            self.dsn,
            self.vectors,
            self.name,
            self.precision,
            Path(self.cache),
            self.languages,
        )

    def open_index(self, bucket: str, index: MadeIndex) -> AbstractContextManager[Searcher]:
        """Open a searcher over one index of a bucket, live or not."""
        return open_searcher(
            Path(self.home),
            self.dsn,
            bucket,
            index.encoder,
            index.precision,
            Path(self.cache),
            self.languages,
            pinned=True,
        )
