"""The assets about patches: those of a month and their series, commits, and links of both.

https://docs.dagster.io/guides/build/assets
"""

import dagster as dg

from mail_assets.defs.assets.figures import describe_asset
from mail_assets.defs.assets.mail import RETRIES
from mail_assets.defs.assets.months import (
    RebuildConfig,
    materialize_table,
    table_metadata,
)
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import RepositoriesResource, WorkspaceResource
from mail_assets.mail.patches.links import LINKS_VERSION
from mail_assets.mail.patches.read import PATCHES_VERSION
from mail_assets.month import ListMonth
from mail_assets.steps.group_series import GROUPING_VERSION, group_series
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.read_commits import COMMITS_VERSION, read_month_commits
from mail_assets.steps.read_patches import make_patches


def build_patches(partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Build the asset."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("messages")],
        tags={"layer": "patches"},
        kinds={"postgres"},
        metadata=describe_asset("patches"),
        code_version=PATCHES_VERSION,
    )
    def patches(
        context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        """One row per patch that was mailed, inline or attached, and per cover letter: version and
        part, title, author, git's patch-id, files, changed lines as digests, the earlier versions
        that its author links. A malformed patch is a row that says why git refuses it.
        """
        with workspace.open(context) as opened:

            def read(month: ListMonth) -> Outcome:
                return make_patches(opened, month, rebuild=config.rebuild)

            return materialize_table(context, opened, read, rows="rows")

    return patches


@dg.asset(
    key_prefix=PREFIX,
    deps=[asset_key("messages"), asset_key("patches")],
    tags={"layer": "patches"},
    kinds={"postgres"},
    metadata=describe_asset("patch_series"),
    code_version=GROUPING_VERSION,
)
def patch_series(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per patch and cover letter: the series it belongs to, the version it continues and
    the evidence for it, and what became of it, with the sentence that says so. Unpartitioned: a
    new version is often in a later month or on another list. Only series that changed are grouped
    again.
    """
    with workspace.open(context) as opened:
        outcome = group_series(opened.connection, opened.log, rebuild=config.rebuild)
        about = table_metadata(opened.connection, "patch_series", int(outcome.counts["patches"]))
    return dg.MaterializeResult(
        metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
    )


def build_commits(partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Build the asset. A partition has the commits of all repositories of its list.

    The partitions are those of all assets: a selection of all of them can be made by one key only
    if they have one definition.
    """

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        tags={"layer": "patches"},
        kinds={"git", "postgres"},
        metadata=describe_asset("commits"),
        code_version=COMMITS_VERSION,
        retry_policy=RETRIES,
    )
    def commits(
        context: dg.AssetExecutionContext,
        config: RebuildConfig,
        workspace: WorkspaceResource,
        repositories: RepositoriesResource,
    ) -> dg.MaterializeResult:
        """One row per commit of the repositories that a list discusses, in the month of the
        committer date: message, author, committer, files with their added and removed lines,
        trailers, git's patch-id. A branch whose history was rewritten is named.
        """
        with workspace.open(context) as opened:

            def read(month: ListMonth) -> Outcome:
                sources = repositories.of_list(month.list_name)
                return read_month_commits(opened, month, sources, rebuild=config.rebuild)

            return materialize_table(context, opened, read, rows="commits")

    return commits


@dg.asset(
    key_prefix=PREFIX,
    deps=[asset_key("commits"), asset_key("patches"), asset_key("threads")],
    tags={"layer": "links"},
    kinds={"postgres"},
    metadata=describe_asset("commit_links"),
    code_version=LINKS_VERSION,
)
def commit_links(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    repositories: RepositoriesResource,
) -> dg.MaterializeResult:
    """One row per mail that a commit comes from or names, with its evidence: the patch that was
    applied, its other versions, discussions, reports. Unpartitioned: commit and mail are often in
    different months. A commit without certain mail has no row.
    """
    with workspace.open(context) as opened:
        outcome = link_commits(
            opened.connection, repositories.discussed, opened.log, rebuild=config.rebuild
        )
        about = table_metadata(opened.connection, "commit_links", int(outcome.counts["links"]))
    return dg.MaterializeResult(
        metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
    )
