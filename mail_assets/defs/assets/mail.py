"""The assets of mail: archives, messages, threads and their summaries, patches, commits, links.

An asset only opens its resources, calls a function of steps/ and records the result.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Mapping
from functools import partial

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.figures import describe_figures
from mail_assets.defs.assets.months import (
    RebuildConfig,
    mail_asset,
    materialize_table,
    record_table,
)
from mail_assets.defs.partitions import ANY_MONTHS, asset_key, partition_key
from mail_assets.defs.resources import (
    ArchiveSourceResource,
    RepositoriesResource,
    SummariesResource,
    WorkspaceResource,
)
from mail_assets.mail.patches.links import LINKS_VERSION
from mail_assets.mail.patches.read import PATCHES_VERSION
from mail_assets.month import ListMonth
from mail_assets.settings.lists import MailingList
from mail_assets.steps.build_threads import THREADS_VERSION, build_threads
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.group_series import GROUPING_VERSION, group_series
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.load_messages import MESSAGES_VERSION, load_messages
from mail_assets.steps.read_commits import read_month_commits
from mail_assets.steps.read_patches import make_patches
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.tables.commits import COMMITS_VERSION
from mail_assets.tables.messages import settle_rows
from mail_assets.workspace import Outcome

mbox_source = dg.AssetSpec(
    asset_key("mbox_source"),
    tags={"layer": "outside"},
    kinds={"file"},
    description="The list's monthly mbox archives where they are published: a folder, "
    "an HTTP server or an S3 prefix, by lists.toml.",
)

#: For a server that is down for a short time; the source itself has already tried for a minute.
RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)


class ArchivesConfig(RebuildConfig):
    """Run configuration of mbox_archives."""

    allow_loss: bool = Field(
        default=False,
        description="accept an archive that vanished, lost more than a few per cent of its "
        "messages since it was last fetched, or belongs to another list",
    )


def build_mbox_archives(lists: Mapping[str, MailingList], keep_days: int) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml; former archives are kept for `keep_days`."""

    @mail_asset(
        "mbox_source", layer="ingest", monthly=True, kinds={"file", "postgres"}, code_version="1"
    )
    def mbox_archives(
        context: dg.AssetExecutionContext,
        config: ArchivesConfig,
        workspace: WorkspaceResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.MaterializeResult:
        """The archive of one month of one list, as fetched: bytes in the archive store, and a row
        with digest, version, dialect and message count in PostgreSQL. A month without an archive at
        the source gets an empty row with a note. `removed_upstream` has messages that an archive no
        longer contains.
        """
        with workspace.open(context) as opened:

            def fetch(month: ListMonth) -> Outcome:
                source = archive_source.of(month.list_name)
                dialect = lists[month.list_name].dialect
                options = FetchOptions(dialect, config.allow_loss, keep_days, config.rebuild)
                return fetch_archive(opened, month, source, options)

            return materialize_table(context, opened, fetch, rows="found", retries=RETRIES)

    return mbox_archives


def build_messages(lists: Mapping[str, MailingList]) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml."""

    @mail_asset(
        "mbox_archives",
        layer="ingest",
        monthly=True,
        kinds={"postgres"},
        code_version=MESSAGES_VERSION,
    )
    def messages(
        context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        """One row per message of a list's month: headers repaired, body as text, segments
        (new text, quotes, signatures, patches), identifiers, full-text index. Unreadable mail is in
        `quarantine`. Forgotten mail is in `removed_messages`, without its text.
        found = stored + duplicates + quarantined + removed.
        """
        with workspace.open(context) as opened:

            def load(month: ListMonth) -> Outcome:
                defaults = lists[month.list_name].defaults
                return load_messages(opened, month, defaults, rebuild=config.rebuild)

            made = materialize_table(context, opened, load, rows="stored")
            settle_rows(opened.connection)  # once: after each month it takes three times as long
            return made

    return messages


@mail_asset("messages", layer="text", kinds={"postgres"}, code_version=THREADS_VERSION)
def threads(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per message, and per missing message that others refer to: its thread, parent,
    depth and position. Not partitioned, because a reply is often in a later month or on another
    list. The result depends only on the set of messages, not on their order.
    """
    with workspace.open(context) as opened:
        outcome = build_threads(opened.connection, opened.log, rebuild=config.rebuild)
        return record_table(opened.connection, "threads", outcome, "messages", "ghosts")


@mail_asset("messages", "threads", layer="text", kinds={"postgres"})
def thread_summaries(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    summaries: SummariesResource,
) -> dg.MaterializeResult:
    """One row per thread: the question or proposal, the answers and the decision, in sentences
    with the message and the characters they come from. Also people, dates, and messages with
    patches. Only changed threads are summarized again.
    """
    with workspace.open(context) as opened, summaries.open() as maker:
        outcome = summarize_threads(
            opened.connection, maker, opened.log, opened.workers, rebuild=config.rebuild
        )
        if outcome.note:
            context.log.warning("threads were left for the next run: %s", outcome.note)
        return record_table(opened.connection, "thread_summaries", outcome, "summaries")


@mail_asset(
    "messages", layer="patches", monthly=True, kinds={"postgres"}, code_version=PATCHES_VERSION
)
def patches(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per mailed patch, inline or attached, and per cover letter: version and part,
    title, author, git's patch-id, files, digests of changed lines, and links by its author to
    earlier versions. The row of a malformed patch says why git refuses it.
    """
    with workspace.open(context) as opened:
        read = partial(make_patches, opened, rebuild=config.rebuild)
        return materialize_table(context, opened, read, rows="rows")


@mail_asset(
    "messages", "patches", layer="patches", kinds={"postgres"}, code_version=GROUPING_VERSION
)
def patch_series(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per patch and cover letter: its series, the version that it continues with the
    evidence, and its state with the sentence that states it. Not partitioned, because a new version
    is often in a later month or on another list. Only changed series are grouped again.
    """
    with workspace.open(context) as opened:
        report = partial(_record_health, context, "patch_health")
        outcome = group_series(opened.connection, opened.log, rebuild=config.rebuild, report=report)
        return record_table(opened.connection, "patch_series", outcome, "patches")


def _build_health(name: str, source: str, description: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        asset_key(name),
        deps=[asset_key(source)],
        partitions_def=ANY_MONTHS,
        tags={"layer": "links"},
        kinds={"dagster"},
        description=f"{description} Only `{source}` makes this asset: it records the months whose "
        "figures have changed. Under Metadata, Plots shows each figure by month.",
        metadata=describe_figures(name),
    )


patch_health = _build_health(
    "patch_health",
    "patch_series",
    "States of the patches of each month: how many continue an earlier version, are open, applied, "
    "superseded, rejected or withdrawn. A month without patches stays missing.",
)
commit_health = _build_health(
    "commit_health",
    "commit_links",
    "How many commits of each month are linked to their mail, and by which evidence. A month "
    "without commits stays missing.",
)


#: Asset of health -> its figures that are also recorded as shares of all.
SHARES = {
    "commit_health": ("linked", "named_elsewhere"),
    "patch_health": ("joined", "open", "applied", "superseded"),
}


def _record_health(
    context: dg.AssetExecutionContext,
    name: str,
    months: Mapping[ListMonth, Mapping[str, int | float]],
) -> None:
    for month, counts in months.items():
        whole = counts["commits" if name == "commit_health" else "patches"]
        shares = {
            f"share_{figure}": round(counts[figure] / whole, 4) if whole else 0.0
            for figure in SHARES[name]
        }
        context.log_event(
            dg.AssetMaterialization(
                asset_key(name), partition=partition_key(month), metadata={**counts, **shares}
            )
        )


# with the same months as other assets: all can be materialized together by one key
@mail_asset(
    layer="patches",
    monthly=True,
    kinds={"git", "postgres"},
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
    trailers, git's patch-id. A note names branches whose history was rewritten. Months of a list
    without a repository stay missing.
    """
    with workspace.open(context) as opened:

        def read(month: ListMonth) -> Outcome:
            sources = repositories.of_list(month.list_name)
            return read_month_commits(opened, month, sources, rebuild=config.rebuild)

        return materialize_table(context, opened, read, rows="commits")


@mail_asset(
    "commits", "patches", "threads", layer="links", kinds={"postgres"}, code_version=LINKS_VERSION
)
def commit_links(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    repositories: RepositoriesResource,
) -> dg.MaterializeResult:
    """One row per mail that a commit comes from or names, with the evidence: the applied patch,
    its other versions, discussions, reports. Not partitioned, because commit and mail are often in
    different months. A commit without certain mail has no row.
    """
    with workspace.open(context) as opened:
        report = partial(_record_health, context, "commit_health")
        outcome = link_commits(
            opened, repositories.discussed, rebuild=config.rebuild, report=report
        )
        return record_table(opened.connection, "commit_links", outcome, "links")
