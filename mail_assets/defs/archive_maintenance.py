"""The op that deletes former archives whose time (MAIL_KEEP_ARCHIVES) is over."""

import dagster as dg

from mail_assets.defs.resources.workspace import WorkspaceResource
from mail_assets.steps.archive_loss import sweep_former_archives


@dg.op
def sweep_archives(context: dg.OpExecutionContext, workspace: WorkspaceResource) -> None:
    """Delete former archives whose time is over."""
    with workspace.open(context) as opened:
        context.add_output_metadata({"expired": sweep_former_archives(opened)})
