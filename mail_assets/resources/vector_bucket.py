"""The vector bucket: LanceDB by default, S3 Vectors, Supabase or pgvector by its URL."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from mail_assets.store.database import MAIL, embedded_dsn
from mail_assets.vectors.bucket import Bucket, open_bucket


class VectorBucketResource(dg.ConfigurableResource):
    """The bucket that MAIL_VECTORS names."""

    url: str = Field(description="MAIL_VECTORS: lance:, s3vectors://, supabase:// or pgvector:")
    home: str = Field(description="MAIL_HOME; its embedded server serves pgvector:")
    dsn: str = Field(default="", description="MAIL_PG_DSN; serves pgvector: where it is set")

    def open(self) -> Bucket:
        """Open the bucket; credentials come from the environment."""
        if not self.url.startswith("pgvector:"):
            return open_bucket(self.url)
        return open_bucket(self.url, dsn=self.dsn or embedded_dsn(Path(self.home), MAIL))
