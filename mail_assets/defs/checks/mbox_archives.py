"""The check of `mbox_archives`: the dialect that lists.toml sets is that of the archives."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.mail.archive.dialects import contradicts
from mail_assets.month import ListMonth
from mail_assets.tables.checks import read_dialects


@dg.asset_check(asset=asset_key("mbox_archives"))
def dialect_fits(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """No archive is written in another dialect than lists.toml sets: `better` is what to set there
    instead, or leave the dialect out.
    """
    return check_months(context, database, _find_dialects, dg.AssetCheckSeverity.WARN)


def _find_dialects(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    return {
        month: CheckedMonth(not contradicts(dialect, found), {"dialect": dialect, "better": found})
        for month, (dialect, found) in read_dialects(connection, months).items()
    }
