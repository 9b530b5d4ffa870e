"""The partitions, which are the months of every list, and the keys of the assets.

A partition key is LIST|YYYY-MM, because Dagster orders dimensions by name: "list", "month".
https://docs.dagster.io/guides/build/partitions-and-backfills
"""

import functools
import sys

import dagster as dg
from dagster._core.definitions.backfill_policy import BackfillPolicyType

from mail_assets.month import ListMonth, next_month

#: First part of each asset key; it separates them from other projects in the same instance.
PREFIX = "mail"

#: The only group of assets: the UI would show several groups collapsed. A tag has the layer.
GROUP = "mail"

#: The modules of `dagster asset materialize`, `dagster job execute` and `dg launch`.
_COMMAND_LINE = ("dagster._cli.asset", "dagster._cli.job")


class BackfillPolicy(dg.BackfillPolicy):
    """A policy of many runs that still allows `--partition-range` on the command line.

    Dagster's commands refuse `--partition-range` unless the policy type is a single run. They use
    the type for nothing else. The class must have the name of its base, by which Dagster stores it.
    """

    @property
    def policy_type(self) -> BackfillPolicyType:
        """A single run for callers of the command line, many runs for the daemon and the UI."""
        if sys._getframe(1).f_globals.get("__name__") in _COMMAND_LINE:
            return BackfillPolicyType.SINGLE_RUN
        return super().policy_type


#: One run per list and year. One run per month would cost 2.7 s each, 107 minutes for the 2,400
#: months of eight lists. One run per list would show nothing until its end.
YEAR = BackfillPolicy(max_partitions_per_run=12)

#: The policy of assets without months: without a policy, commands refuse a range for `'*'`.
WHOLE = dg.BackfillPolicy.single_run()

#: The assets that have months, in the order of the chain.
MONTHLY = ("mbox_archives", "messages", "words", "patches", "chunks", "embeddings", "vectors")

#: The assets of the whole corpus, which a backfill builds at its end.
CORPUS_ASSETS = ("threads", "thread_summaries", "patch_series", "commit_links")


def asset_key(name: str) -> dg.AssetKey:
    """Return the key of the asset `name`."""
    return dg.AssetKey([PREFIX, name])


@functools.cache
def list_months(
    lists: tuple[str, ...], first_month: str, last_month: str | None = None
) -> dg.MultiPartitionsDefinition:
    """Return the partitions of all assets with months.

    The lists are sorted, because Dagster resolves a range in the given order, and a range against
    that order selects nothing.
    """
    return dg.MultiPartitionsDefinition(
        {
            "list": dg.StaticPartitionsDefinition(sorted(lists)),
            "month": months(first_month, last_month),
        }
    )


def list_names(partitions: dg.MultiPartitionsDefinition) -> list[str]:
    """Return the names of the lists, sorted."""
    return [*partitions.get_partitions_def_for_dimension("list").get_partition_keys()]


def months(first_month: str, last_month: str | None = None) -> dg.MonthlyPartitionsDefinition:
    """Return the months from `first_month` to `last_month`, or to the current month."""
    return dg.MonthlyPartitionsDefinition(
        start_date=first_month,
        end_date=next_month(last_month) if last_month else None,
        fmt="%Y-%m",
        timezone="UTC",
        end_offset=1,
    )


#: Placeholder for the partitions of assets with months; the settings decide them (build_assets).
ANY_MONTHS = list_months(("list",), "1995-01")


def partition_key(month: ListMonth) -> dg.MultiPartitionKey:
    """Return Dagster's key of a month, "LIST|YYYY-MM"."""
    return dg.MultiPartitionKey(month.columns)


def is_of_months(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> bool:
    """Return whether a run has partitions."""
    return bool(context.has_partition_key or context.has_partition_key_range)


def months_of_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
) -> list[ListMonth]:
    """Return the months that this run must make, at least one.

    Raises:
        dagster.Failure: the range is reversed; Dagster itself would report a success.
    """
    keys = context.partition_keys
    if not keys:
        raise dg.Failure(
            "the partition range selects nothing: is it reversed? "
            "Give the earlier key first, as in 'LIST|2024-01...LIST|2024-12'",
            allow_retries=False,
        )
    return [ListMonth.parse(str(key)) for key in keys]
