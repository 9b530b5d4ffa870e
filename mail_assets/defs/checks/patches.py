"""The checks of patches."""

import dagster as dg

from mail_assets.defs.checks.months import (
    ERROR,
    WARN,
    CheckedMonth,
    Results,
    check_months,
    judge_each,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.tables.checks import (
    CommitCounts,
    LinkCounts,
    PatchCounts,
    SeriesCounts,
    count_commits,
    count_in_series,
    count_links,
    count_patches,
)

#: Share of malformed patches above which a month deserves a look; lists of developers have 2 %.
MAX_MALFORMED = 0.25

#: Patches that a share needs to say anything.
ENOUGH_PATCHES = 20


@dg.asset_check(asset=asset_key("patches"), blocking=True)
def patches_accounted_for(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> Results:
    """Every message with lines of a diff or an attached patch has a row, or was read and has no
    patch, such as a diffstat alone.
    """
    return check_months(context, database, judge_each(count_patches, _judge_balance), ERROR)


def _judge_balance(counts: PatchCounts) -> CheckedMonth:
    return CheckedMonth(counts.balanced, counts._asdict())


@dg.asset_check(asset=asset_key("patches"))
def few_malformed(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Few patches are such that git refuses them."""
    return check_months(context, database, judge_each(count_patches, _judge_malformed), WARN)


def _judge_malformed(counts: PatchCounts) -> CheckedMonth:
    share = counts.malformed / max(1, counts.rows)
    few = share <= MAX_MALFORMED or counts.rows < ENOUGH_PATCHES
    return CheckedMonth(few, {**counts._asdict(), "share": round(share, 4)})


@dg.asset_check(asset=asset_key("commits"), blocking=True)
def commits_counted(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """The stored commits of a month are as many as were read. Mend others with `rebuild`."""
    return check_months(context, database, judge_each(count_commits, _judge_commits), ERROR)


def _judge_commits(counts: CommitCounts) -> CheckedMonth:
    return CheckedMonth(counts.rows == counts.recorded, counts._asdict())


@dg.asset_check(asset=asset_key("patch_series"), blocking=True)
def series_complete(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Each patch is in a series. The months of patches that have changed are checked."""
    return check_months(
        context,
        database,
        judge_each(count_in_series, _judge_series),
        ERROR,
        months_of="patches",
    )


def _judge_series(counts: SeriesCounts) -> CheckedMonth:
    return CheckedMonth(not counts.without_series, counts._asdict())


@dg.asset_check(asset=asset_key("commit_links"), blocking=True)
def links_stand(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Links of commits are as many as were made, and each leads to a message. The months of commits
    that have changed are checked. Mend others with `rebuild`.
    """
    return check_months(
        context, database, judge_each(count_links, _judge_links), ERROR, months_of="commits"
    )


def _judge_links(counts: LinkCounts) -> CheckedMonth:
    return CheckedMonth(counts.right, counts._asdict())
