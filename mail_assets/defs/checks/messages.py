"""Checks of `messages`: every message is accounted for, and few are strange."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Verdict, check_months
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.month import ListMonth
from mail_assets.tables.checks import count_undated, read_message_counts

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

        def look(month: ListMonth) -> Verdict:
            account = read_message_counts(connection, month)
            return account.balanced and not account.empty, account._asdict()

        return check_months(context, look, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset=asset_key("messages"))
def few_quarantined(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are in quarantine."""
    with database.connect("checks", context.run.run_id) as connection:

        def look(month: ListMonth) -> Verdict:
            account = read_message_counts(connection, month)
            share = account.quarantined / max(1, account.found)
            return share <= MAX_QUARANTINED, {**account._asdict(), "share": round(share, 4)}

        return check_months(context, look, dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset=asset_key("messages"))
def few_undated(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages have a date that had to be taken from elsewhere than their Date header."""
    with database.connect("checks", context.run.run_id) as connection:

        def look(month: ListMonth) -> Verdict:
            undated, total = count_undated(connection, month)
            share = undated / max(1, total)
            facts = {"undated": undated, "messages": total, "share": round(share, 4)}
            # one message of a small month proves nothing
            return share <= MAX_UNDATED or undated <= 1, facts

        return check_months(context, look, dg.AssetCheckSeverity.WARN)
