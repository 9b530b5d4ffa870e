"""The files the pipeline keeps: archives as fetched, embeddings as Parquet."""

import dagster as dg
from pydantic import Field

from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store


class StoreResource(dg.ConfigurableResource):
    """The store that MAIL_STORE names."""

    url: str = Field(description="MAIL_STORE: a folder, or s3://bucket/prefix")

    def open(self) -> ObjectStore:
        """Open the store."""
        return open_store(self.url)
