"""The checks of patches."""

from mail_assets.defs.checks.months import ERROR, WARN, CheckedMonth, month_check
from mail_assets.tables.checks import CommitCounts, LinkCounts, PatchCounts, SeriesCounts

#: Share of malformed patches above which a month deserves a look; lists of developers have 2 %.
MAX_MALFORMED = 0.25

#: Patches that a share needs to say anything.
ENOUGH_PATCHES = 20


@month_check("patches", PatchCounts, ERROR)
def patches_accounted_for(counts: PatchCounts) -> CheckedMonth:
    """Every message with lines of a diff or an attached patch has a row, or was read and has no
    patch, such as a diffstat alone.
    """
    return CheckedMonth(counts.balanced, counts._asdict())


@month_check("patches", PatchCounts, WARN)
def few_malformed(counts: PatchCounts) -> CheckedMonth:
    """Few patches are such that git refuses them."""
    share = counts.malformed / max(1, counts.rows)
    few = share <= MAX_MALFORMED or counts.rows < ENOUGH_PATCHES
    return CheckedMonth(few, {**counts._asdict(), "share": round(share, 4)})


@month_check("commits", CommitCounts, ERROR)
def commits_counted(counts: CommitCounts) -> CheckedMonth:
    """The stored commits of a month are as many as were read. Mend others with `rebuild`."""
    return CheckedMonth(counts.rows == counts.recorded, counts._asdict())


@month_check("patch_series", SeriesCounts, ERROR, months_of="patches")
def series_complete(counts: SeriesCounts) -> CheckedMonth:
    """Each patch is in a series. The months of patches that have changed are checked."""
    return CheckedMonth(not counts.without_series, counts._asdict())


@month_check("commit_links", LinkCounts, ERROR, months_of="commits")
def links_stand(counts: LinkCounts) -> CheckedMonth:
    """Links of commits are as many as were made, and each leads to a message. The months of commits
    that have changed are checked. Mend others with `rebuild`.
    """
    return CheckedMonth(counts.right, counts._asdict())
