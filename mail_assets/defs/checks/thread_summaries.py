"""Checks of `thread_summaries`: sentences stand in their messages, and no summary is outdated.

Summaries have no months, but their messages have: the step has those checked again whose threads it
has summarized.
"""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.month import ListMonth
from mail_assets.tables.checks import SummaryAges, count_wrong_sentences, read_summary_ages


@dg.asset_check(asset=asset_key("thread_summaries"), blocking=True)
def sentences_stand(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Each sentence of a summary stands in a message of its thread, at the characters it names."""
    return check_months(
        context, database, _find_wrong_sentences, dg.AssetCheckSeverity.ERROR, months_of="messages"
    )


@dg.asset_check(asset=asset_key("thread_summaries"))
def summaries_current(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Each thread has a summary that is not older than the thread, and none was left waiting."""
    return check_months(
        context, database, _find_outdated, dg.AssetCheckSeverity.WARN, months_of="messages"
    )


def _find_wrong_sentences(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = count_wrong_sentences(connection, months)
    return {month: CheckedMonth(not one.wrong, one._asdict()) for month, one in counts.items()}


def _find_outdated(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    ages = read_summary_ages(connection, months)
    return {month: CheckedMonth(_are_current(one), one._asdict()) for month, one in ages.items()}


def _are_current(ages: SummaryAges) -> bool:
    return not (ages.outdated or ages.missing or ages.waiting)
