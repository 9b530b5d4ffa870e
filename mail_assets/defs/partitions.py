"""The partitions: every month of every list.

What lives here: turning lists and months into Dagster's definitions and back. Keys are
LIST|YYYY-MM, because Dagster orders dimensions by their names, "list" before "month".
What does not: which months a source really has (sources/), and what a run does with them.
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

import functools

import dagster as dg

from mail_assets.month import ListMonth

#: One run per list and year: a run per month costs 2.7 s of overhead, 107 minutes for
#: the 2,400 months of eight lists; one run per list shows nothing until it is done.
YEAR = dg.BackfillPolicy.multi_run(max_partitions_per_run=12)


@functools.cache
def list_months(lists: tuple[str, ...], first_month: str) -> dg.MultiPartitionsDefinition:
    """Return the partitions of all assets that belong to a month of a list.

    The lists stay sorted: Dagster walks a range in the order given, and a range against
    that order selects nothing.
    """
    return dg.MultiPartitionsDefinition(
        {
            "list": dg.StaticPartitionsDefinition(sorted(lists)),
            "month": months(first_month),
        }
    )


def months(first_month: str) -> dg.MonthlyPartitionsDefinition:
    """Return the months from `first_month` to the running one, which is included."""
    return dg.MonthlyPartitionsDefinition(
        start_date=first_month, fmt="%Y-%m", timezone="UTC", end_offset=1
    )


def partition_key(month: ListMonth) -> dg.MultiPartitionKey:
    """Return Dagster's key of a month, "LIST|YYYY-MM"."""
    return dg.MultiPartitionKey(month.columns)


def months_of_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
) -> list[ListMonth]:
    """Return the months this run must produce, never none.

    Raises:
        dagster.Failure: the range is reversed; Dagster itself would call that a success.
    """
    keys = context.partition_keys
    if not keys:
        raise dg.Failure(
            "the partition range selects nothing: is it reversed? "
            "Give the earlier key first, as in 'LIST|2024-01...LIST|2024-12'",
            allow_retries=False,
        )
    return [ListMonth.parse(str(key)) for key in keys]
