"""The vector bucket: LanceDB by default, S3 Vectors, Supabase or pgvector by its URL."""

import dagster as dg
import psycopg
from pydantic import Field

from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.steps.index_lifecycle import live_encoder
from mail_assets.steps.vector_index import MailIndex, open_mail_bucket, open_mail_index
from mail_assets.vectors.bucket import Bucket


class VectorBucketResource(dg.ConfigurableResource):
    """The bucket that MAIL_VECTORS names."""

    url: str = Field(description="MAIL_VECTORS: lance:, s3vectors://, supabase:// or pgvector:")
    database: DatabaseResource = Field(description="the server that serves pgvector:")

    def open(self) -> Bucket:
        """Open the bucket; credentials come from the environment."""
        return open_mail_bucket(self.database.database, self.url)

    def open_index(self, encoder: EncoderResource) -> MailIndex:
        """Open the index of the configured encoder, which the runs of months fill.

        It may not exist yet.
        """
        return open_mail_index(self.open(), self.url, encoder.name, encoder.precision)

    def open_live_index(
        self, connection: psycopg.Connection, encoder: EncoderResource
    ) -> MailIndex:
        """Open the index that search asks; the configured encoder's, where none is live yet.

        Raises:
            LifecycleError: this version does not have the encoder of the live index.
        """
        name, precision = live_encoder(connection, self.url, encoder.name, encoder.precision)
        return open_mail_index(self.open(), self.url, name, precision)
