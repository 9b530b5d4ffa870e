"""What the checks of partitioned assets have in common: find the bad months and name them.

Beside its asset a check looks at the months of the run; run alone it looks at all that were ever
materialized, with one statement for all of them. Checks have no partitions of their own, which are
a preview in Dagster 1.13.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.defs.partitions import months_of_run
from mail_assets.month import ListMonth

#: Months shown as rows and named in one sentence: a decade, and what people read.
MOST_ROWS, MOST_NAMES = 120, 12

#: Dagster takes the columns of a table from its rows, and there may be none.
NO_MONTHS = dg.TableSchema([dg.TableColumn("month")])


class Finding(NamedTuple):
    """Whether a month passes, and the figures that say why."""

    passed: bool
    figures: Mapping[str, Any]


def months_to_check(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetKey | None = None
) -> list[ListMonth]:
    """Return the months of the run; where it has none, all that were ever materialized.

    `asset` is whose months these are, where it is not the asset that is checked.
    """
    if context.has_partition_key or context.has_partition_key_range:
        return months_of_run(context)
    [check] = context.op_execution_context.selected_asset_check_keys
    keys = context.instance.get_materialized_partitions(asset or check.asset_key)
    return [ListMonth.parse(key) for key in sorted(keys)]


def month_result(
    findings: Mapping[ListMonth, Finding], severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    """Return the result over some months, with the figures of the failed ones, else of all."""
    failed = {month: finding for month, finding in findings.items() if not finding.passed}
    rows = [
        dg.TableRecord({"month": month.key, **finding.figures})
        for month, finding in [*(failed or findings).items()][:MOST_ROWS]
    ]
    return dg.AssetCheckResult(
        passed=not failed,
        severity=severity,
        description=f"failed: {_names([*failed])}" if failed else None,
        metadata={
            "months": dg.MetadataValue.table(rows, schema=None if rows else NO_MONTHS),
            "checked_months": len(findings),
            "failed_months": len(failed),
        },
    )


def _names(months: list[ListMonth]) -> str:
    names = ", ".join(map(str, months[:MOST_NAMES]))
    more = len(months) - MOST_NAMES
    return f"{names} and {more} more" if more > 0 else names
