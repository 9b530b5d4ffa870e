"""The check of `mbox_archives`: the dialect that lists.toml sets is that of the archives."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Finding, month_result, months_to_check
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.mail.archive.dialects import contradicts
from mail_assets.tables.checks import read_dialects


@dg.asset_check(asset=asset_key("mbox_archives"))
def dialect_fits(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """No archive is written in another dialect than lists.toml sets: `better` is what to set there
    instead, or leave the dialect out.
    """
    with database.connect("checks", context.run.run_id) as connection:
        dialects = read_dialects(connection, months_to_check(context))
    findings = {
        month: Finding(not contradicts(dialect, found), {"dialect": dialect, "better": found})
        for month, (dialect, found) in dialects.items()
    }
    return month_result(findings, dg.AssetCheckSeverity.WARN)
