"""Where archives come from, per list, and the store that keeps them and the embeddings."""

import dagster as dg
from pydantic import Field, PrivateAttr

from mail_assets.sources.base import ArchiveSource, HttpOptions, open_source
from mail_assets.store.objects import ObjectStore, open_store


class ArchiveSourceResource(dg.ConfigurableResource):
    """The archives of each list of lists.toml: a folder, an HTTP server or an S3 prefix."""

    sources: dict[str, str] = Field(description="list -> folder, https:// or s3:// URL")
    starts: dict[str, str] = Field(description="list -> its first month, YYYY-MM")
    http_auth: str = Field(default="", description="MAIL_HTTP_AUTH, USER:PASSWORD")
    _opened: dict[str, ArchiveSource] = PrivateAttr(default_factory=dict)

    def of(self, name: str) -> ArchiveSource:
        """Return the source of a list, one instance a run: it may remember its listing."""
        if name not in self._opened:
            self._opened[name] = open_source(
                name,
                self.sources[name],
                start=self.starts[name],
                options=HttpOptions(auth=self.http_auth),
            )
        return self._opened[name]


class StoreResource(dg.ConfigurableResource):
    """The files the pipeline keeps: archives as fetched, embeddings as Parquet."""

    url: str = Field(description="MAIL_STORE: a folder, or s3://bucket/prefix")

    def open(self) -> ObjectStore:
        """Open the store."""
        return open_store(self.url)
