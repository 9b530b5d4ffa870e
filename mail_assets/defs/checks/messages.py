"""Checks of `messages`: every message is accounted for, and few are strange."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.month import ListMonth
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
    return check_months(context, database, _find_balances, dg.AssetCheckSeverity.ERROR)


def _find_balances(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    return {
        month: _judge_balance(one) for month, one in read_message_counts(connection, months).items()
    }


def _judge_balance(counts: MessageCounts) -> CheckedMonth:
    reason = ""
    if counts.empty:
        reason = f"the archive has {counts.unpacked_bytes} bytes and no message was found in them"
    elif not counts.balanced:
        reason = f"{counts.found} messages were found and {counts.accounted} are accounted for"
    return CheckedMonth(not reason, counts._asdict(), reason)


@dg.asset_check(asset=asset_key("messages"))
def few_quarantined(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are in quarantine."""
    return check_months(context, database, _find_quarantined, dg.AssetCheckSeverity.WARN)


def _find_quarantined(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = read_message_counts(connection, months)
    return {month: _judge_quarantined(one) for month, one in counts.items()}


def _judge_quarantined(counts: MessageCounts) -> CheckedMonth:
    share = counts.quarantined / max(1, counts.found)
    return CheckedMonth(share <= MAX_QUARANTINED, {**counts._asdict(), "share": round(share, 4)})


@dg.asset_check(asset=asset_key("messages"))
def few_undated(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages have a date that had to be taken from elsewhere than their Date header."""
    return check_months(context, database, _find_undated, dg.AssetCheckSeverity.WARN)


def _find_undated(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = count_undated(connection, months)
    return {month: _judge_undated(one) for month, one in counts.items()}


def _judge_undated(counts: Undated) -> CheckedMonth:
    share = counts.undated / max(1, counts.total)
    figures = {"undated": counts.undated, "messages": counts.total, "share": round(share, 4)}
    # one message of a small month proves nothing
    return CheckedMonth(share <= MAX_UNDATED or counts.undated <= 1, figures)
