"""The vector bucket: LanceDB by default, S3 Vectors, Supabase or pgvector by its URL."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from mail_assets.steps.vectors import open_mail_bucket
from mail_assets.vectors.bucket import Bucket


class VectorBucketResource(dg.ConfigurableResource):
    """The bucket that MAIL_VECTORS names."""

    url: str = Field(description="MAIL_VECTORS: lance:, s3vectors://, supabase:// or pgvector:")
    home: str = Field(description="MAIL_HOME; its embedded server serves pgvector:")
    dsn: str = Field(default="", description="MAIL_PG_DSN; serves pgvector: where it is set")

    def open(self) -> Bucket:
        """Open the bucket; credentials come from the environment."""
        return open_mail_bucket(Path(self.home), self.dsn, self.url)
