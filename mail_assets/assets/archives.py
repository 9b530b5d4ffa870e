"""`mbox_source` and `mbox_archives`: the archives outside, and as fetched."""

import dagster as dg
from pydantic import Field

from mail_assets.assets.months import OWNERS, each_month, sample_metadata, table_metadata
from mail_assets.partitions import YEAR
from mail_assets.resources.archives import ArchiveSourceResource, StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.settings import MailList
from mail_assets.steps.archives import fetch_month

mbox_source = dg.AssetSpec(
    "mbox_source",
    group_name="outside",
    kinds={"file"},
    description="The list's monthly mbox archives where they are published: a folder, "
    "an HTTP server or an S3 prefix, by lists.toml.",
)

#: A server that was down for a moment; the source itself has tried for a minute already.
RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)


class ArchivesConfig(dg.Config):
    """What a run may be told."""

    allow_loss: bool = Field(
        default=False,
        description="accept an archive that vanished or lost more than a few per cent of "
        "its messages since it was fetched last",
    )


def build_mbox_archives(
    partitions: dg.MultiPartitionsDefinition, lists: dict[str, MailList]
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml."""

    @dg.asset(
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[mbox_source],
        group_name="ingest",
        kinds={"file", "postgres"},
        owners=OWNERS,
        code_version="1",
        retry_policy=RETRIES,
    )
    def mbox_archives(
        context: dg.AssetExecutionContext,
        config: ArchivesConfig,
        database: DatabaseResource,
        store: StoreResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.MaterializeResult:
        """The archive of one month of one list, as fetched: bytes in the archive store,
        a row with digest, version and message count in Postgres. A month the source has no
        archive for is empty and says so.
        """
        files = store.open()
        with database.connect("mbox_archives", context.run.run_id) as connection:
            made = each_month(
                context,
                lambda archive: fetch_month(
                    connection,
                    files,
                    archive_source.of(archive.list),
                    archive.list,
                    archive.month,
                    lists[archive.list].dialect,
                    config.allow_loss,
                ),
                rows="found",
                show=lambda archive: sample_metadata(connection, "mbox_archives", archive),
            )
            about = table_metadata(connection, "mbox_archives")
        return dg.MaterializeResult(metadata={**made.counts, **about}, data_version=made.version)

    return mbox_archives
