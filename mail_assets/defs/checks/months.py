"""What the checks of partitioned assets have in common: look at months, name those that fail.

A check looks at the months of its run, or at all that were ever materialized where it is run
alone. Checks are not partitioned (a preview in Dagster 1.13).
"""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from mail_assets.defs.partitions import months_of_run
from mail_assets.month import ListMonth

#: Whether a month passes, and the figures that say why.
Verdict = tuple[bool, Mapping[str, Any]]


def check_months(
    context: dg.AssetCheckExecutionContext,
    look: Callable[[ListMonth], Verdict],
    severity: dg.AssetCheckSeverity,
) -> dg.AssetCheckResult:
    """Look at each month; show the figures of those that fail, of all where none does."""
    seen = {month: look(month) for month in _months(context)}
    failed = {month: facts for month, (passed, facts) in seen.items() if not passed}
    shown = failed or {month: facts for month, (_, facts) in seen.items()}
    records = [dg.TableRecord({"month": month.key, **facts}) for month, facts in shown.items()]
    return dg.AssetCheckResult(
        passed=not failed,
        severity=severity,
        description=f"failed: {', '.join(map(str, failed))}" if failed else None,
        metadata={"months": dg.MetadataValue.table(records), "failed_months": len(failed)},
    )


def _months(context: dg.AssetCheckExecutionContext) -> list[ListMonth]:
    """Return the months of the run; where it has none, all that were ever materialized."""
    if context.has_partition_key or context.has_partition_key_range:
        return months_of_run(context)
    [check] = context.op_execution_context.selected_asset_check_keys
    keys = context.instance.get_materialized_partitions(check.asset_key)
    return [ListMonth.parse(key) for key in sorted(keys)]
