"""Checks of `messages`: every message is accounted for, and few are strange."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Finding, month_result, months_to_check
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.tables.checks import MessageCounts, Undated, count_undated, read_message_counts

#: Shares above which a month deserves a look. A clean technical list has less than 0.1 %
#: in quarantine and 1 % repaired dates; a spam corpus has 6 %.
MAX_QUARANTINED, MAX_UNDATED = 0.01, 0.05


@dg.asset_check(asset=asset_key("messages"), blocking=True)
def accounted_for(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Every message found in the archive is stored, a duplicate, quarantined or removed, and
    an archive that is not empty has messages.
    """
    with database.connect("checks", context.run.run_id) as connection:
        counts = read_message_counts(connection, months_to_check(context))
    findings = {
        month: Finding(one.balanced and not one.empty, one._asdict())
        for month, one in counts.items()
    }
    return month_result(findings, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset=asset_key("messages"))
def few_quarantined(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are in quarantine."""
    with database.connect("checks", context.run.run_id) as connection:
        counts = read_message_counts(connection, months_to_check(context))
    findings = {month: _find_quarantined(one) for month, one in counts.items()}
    return month_result(findings, dg.AssetCheckSeverity.WARN)


def _find_quarantined(counts: MessageCounts) -> Finding:
    share = counts.quarantined / max(1, counts.found)
    return Finding(share <= MAX_QUARANTINED, {**counts._asdict(), "share": round(share, 4)})


@dg.asset_check(asset=asset_key("messages"))
def few_undated(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages have a date that had to be taken from elsewhere than their Date header."""
    with database.connect("checks", context.run.run_id) as connection:
        counts = count_undated(connection, months_to_check(context))
    findings = {month: _find_undated(one) for month, one in counts.items()}
    return month_result(findings, dg.AssetCheckSeverity.WARN)


def _find_undated(counts: Undated) -> Finding:
    share = counts.undated / max(1, counts.total)
    figures = {"undated": counts.undated, "messages": counts.total, "share": round(share, 4)}
    # one message of a small month proves nothing
    return Finding(share <= MAX_UNDATED or counts.undated <= 1, figures)
