"""The check of `threads`: few replies refer to nothing."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.tables.checks import count_unthreaded

#: The share of replies without a reference above which the corpus deserves a look.
MAX_UNTHREADED = 0.05


@dg.asset_check(asset=asset_key("threads"))
def few_unthreaded(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are replies by their subject but refer to nothing; all are in threads."""
    with database.connect("checks", context.run.run_id) as connection:
        orphans, unknown, total = count_unthreaded(connection)
    share = orphans / max(1, total)
    return dg.AssetCheckResult(
        passed=unknown == 0 and share <= MAX_UNTHREADED,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "replies_without_reference": orphans,
            "not_in_threads": unknown,
            "messages": total,
            "share": round(share, 4),
        },
    )
