"""`threads`: who answers whom, over the whole corpus."""

import dagster as dg

from mail_assets.defs.assets.metadata import sample_metadata, table_columns, table_metadata
from mail_assets.defs.partitions import PREFIX, asset_key
from mail_assets.defs.resources import WorkspaceResource
from mail_assets.steps.build_threads import VERSION, build_threads


@dg.asset(
    key_prefix=PREFIX,
    deps=[asset_key("messages")],
    tags={"layer": "text"},
    kinds={"postgres"},
    metadata=table_columns("threads"),
    code_version=VERSION,
)
def threads(
    context: dg.AssetExecutionContext, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per message, and per missing message that others refer to: its thread, parent,
    depth and position. Unpartitioned: a reply is often in a later month or on another
    list, and the result depends on the set of messages only.
    """
    with workspace.open(context) as opened:
        outcome = build_threads(opened.connection, opened.log)
        rows = int(outcome.counts["messages"] + outcome.counts["ghosts"])
        about = table_metadata(opened.connection, "threads", rows)
        if workspace.samples:
            about |= sample_metadata(opened.connection, "threads", None)
    return dg.MaterializeResult(
        metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
    )
