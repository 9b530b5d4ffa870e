"""`mbox_source` and `mbox_archives`: the archives outside, and as fetched."""

from collections.abc import Mapping

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import ArchiveSourceResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.settings.lists_file import MailingList
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.outcome import Outcome

mbox_source = dg.AssetSpec(
    asset_key("mbox_source"),
    tags={"layer": "outside"},
    kinds={"file"},
    description="The list's monthly mbox archives where they are published: a folder, "
    "an HTTP server or an S3 prefix, by lists.toml.",
)

#: A server that was down for a moment; the source itself has tried for a minute already.
RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)


class ArchivesConfig(dg.Config):
    """Run configuration of mbox_archives."""

    allow_loss: bool = Field(
        default=False,
        description="accept an archive that vanished, lost more than a few per cent of its "
        "messages since it was fetched last, or is of another list",
    )


def build_mbox_archives(
    partitions: dg.MultiPartitionsDefinition, lists: Mapping[str, MailingList], keep_days: int
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml; former archives are kept for some days."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[mbox_source],
        tags={"layer": "ingest"},
        kinds={"file", "postgres"},
        metadata=table_columns("mbox_archives"),
        code_version="1",
        retry_policy=RETRIES,
    )
    def mbox_archives(
        context: dg.AssetExecutionContext,
        config: ArchivesConfig,
        workspace: WorkspaceResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.MaterializeResult:
        """The archive of one month of one list, as fetched: bytes in the archive store,
        a row with digest, version, dialect and message count in Postgres. A month the source
        has no archive for is empty and says so; messages that an archive no longer holds are in
        `removed_upstream`.
        """
        with workspace.open(context) as opened:

            def fetch(month: ListMonth) -> Outcome:
                source = archive_source.of(month.list_name)
                options = FetchOptions(lists[month.list_name].dialect, config.allow_loss, keep_days)
                return fetch_archive(opened, month, source, options)

            return materialize_table(context, opened, fetch, rows="found")

    return mbox_archives
