"""`messages`: the rows of every message of an archive."""

import dagster as dg

from mail_assets.assets.months import OWNERS, each_month, sample_metadata, table_metadata
from mail_assets.partitions import YEAR
from mail_assets.resources.archives import StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.settings import MailList
from mail_assets.steps.messages import VERSION, load_archive


def build_messages(
    partitions: dg.MultiPartitionsDefinition, lists: dict[str, MailList]
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml."""

    @dg.asset(
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=["mbox_archives"],
        group_name="ingest",
        kinds={"postgres"},
        owners=OWNERS,
        code_version=VERSION,
    )
    def messages(
        context: dg.AssetExecutionContext, database: DatabaseResource, store: StoreResource
    ) -> dg.MaterializeResult:
        """One row per message of a list's month: headers repaired, body as text, segments
        (new text, quotes, signatures, patches), identifiers, full-text index. What cannot be
        read is in `quarantine`, what was forgotten in `removed`, without its text; found =
        stored + duplicates + quarantined + removed.
        """
        files = store.open()
        with database.connect("messages", context.run.run_id) as connection:
            made = each_month(
                context,
                lambda archive: load_archive(
                    connection,
                    files,
                    archive.list,
                    archive.month,
                    lists[archive.list].dialect,
                    lists[archive.list].language,
                    context.log.info,
                ),
                rows="stored",
                show=lambda archive: sample_metadata(connection, "messages", archive),
            )
            about = table_metadata(connection, "messages")
        return dg.MaterializeResult(metadata={**made.counts, **about}, data_version=made.version)

    return messages
