"""The check of `threads`: every message is in a thread, and few replies refer to nothing."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.month import ListMonth
from mail_assets.tables.checks import Unthreaded, count_unthreaded

#: The share of replies without a reference above which a month deserves a look.
MAX_UNTHREADED = 0.05


@dg.asset_check(asset=asset_key("threads"))
def few_unthreaded(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """All messages are in threads, and few that are replies by their subject refer to nothing.

    Threads have no months, but messages have: those that have changed are looked at.
    """
    return check_months(
        context, database, _find_unthreaded, dg.AssetCheckSeverity.WARN, months_of="messages"
    )


def _find_unthreaded(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = count_unthreaded(connection, months)
    return {month: _judge_unthreaded(one) for month, one in counts.items()}


def _judge_unthreaded(counts: Unthreaded) -> CheckedMonth:
    share = counts.replies_without_reference / max(1, counts.messages)
    # one message of a small month proves nothing
    few = share <= MAX_UNTHREADED or counts.replies_without_reference <= 1
    figures = {**counts._asdict(), "share": round(share, 4)}
    return CheckedMonth(few and not counts.not_in_threads, figures)
