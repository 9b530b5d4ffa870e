"""`messages`: the rows of every message of an archive."""

from collections.abc import Mapping

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.settings.lists_file import MailingList
from mail_assets.steps.load_messages import VERSION, load_messages
from mail_assets.steps.outcome import Outcome


def build_messages(
    partitions: dg.MultiPartitionsDefinition, lists: Mapping[str, MailingList]
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("mbox_archives")],
        tags={"layer": "ingest"},
        kinds={"postgres"},
        metadata=table_columns("messages"),
        code_version=VERSION,
    )
    def messages(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        """One row per message of a list's month: headers repaired, body as text, segments
        (new text, quotes, signatures, patches), identifiers, full-text index. What cannot be
        read is in `quarantine`, what was forgotten in `removed_messages`, without its text;
        found = stored + duplicates + quarantined + removed.
        """
        with workspace.open(context) as opened:

            def load(month: ListMonth) -> Outcome:
                return load_messages(opened, month, *lists[month.list_name].wording)

            return materialize_table(context, opened, load, rows="stored")

    return messages
