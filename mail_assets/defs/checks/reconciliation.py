"""What the checks of whole indexes have in common: a reconciliation as the result of a check."""

import dagster as dg

from mail_assets.steps.reconcile_index import Reconciliation

#: An emptied index has a fault in each of thousands of months.
MAX_RECORDS = 100

FAULT_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("fault", "string"),
        dg.TableColumn("list", "string"),
        dg.TableColumn("month", "string"),
        dg.TableColumn("keys", "int"),
        dg.TableColumn("examples", "string"),
    ]
)


def no_live_index(url: str) -> dg.AssetCheckResult:
    """Return the warning that there is nothing to look at yet."""
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"no live index in {url} yet; run `mail-assets backfill`",
    )


def reconciliation_result(found: Reconciliation) -> dg.AssetCheckResult:
    """Return what was found, with the faults as a table."""
    records = [
        dg.TableRecord({**fault.as_json(), "examples": ", ".join(fault.examples)})
        for fault in found.faults[:MAX_RECORDS]
    ]
    return dg.AssetCheckResult(
        passed=found.clean,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "index": found.index,
            **found.figures,
            **found.counts,
            "faults": dg.MetadataValue.table(records, FAULT_SCHEMA),
        },
    )
