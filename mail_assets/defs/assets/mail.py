"""The assets of mail: archives outside and as fetched, messages, threads and their summaries.

An asset is thin: it opens its resources, calls a function of steps/ and records the result.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Mapping

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.figures import describe_asset
from mail_assets.defs.assets.months import (
    RebuildConfig,
    materialize_table,
    table_metadata,
)
from mail_assets.defs.partitions import PREFIX, WHOLE, YEAR, asset_key
from mail_assets.defs.resources import ArchiveSourceResource, SummariesResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.settings.lists import MailingList
from mail_assets.steps.build_threads import THREADS_VERSION, build_threads
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import MESSAGES_VERSION, load_messages
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.summarize_threads import summarize_threads

mbox_source = dg.AssetSpec(
    asset_key("mbox_source"),
    tags={"layer": "outside"},
    kinds={"file"},
    description="The list's monthly mbox archives where they are published: a folder, "
    "an HTTP server or an S3 prefix, by lists.toml.",
)

#: For a server that is down for a moment; the source itself has already tried for a minute.
RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)


class ArchivesConfig(RebuildConfig):
    """Run configuration of mbox_archives."""

    allow_loss: bool = Field(
        default=False,
        description="accept an archive that vanished, lost more than a few per cent of its "
        "messages since it was last fetched, or belongs to another list",
    )


def build_mbox_archives(
    partitions: dg.MultiPartitionsDefinition, lists: Mapping[str, MailingList], keep_days: int
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml; former archives are kept for `keep_days`."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[mbox_source],
        tags={"layer": "ingest"},
        kinds={"file", "postgres"},
        metadata=describe_asset("mbox_archives"),
        code_version="1",
    )
    def mbox_archives(
        context: dg.AssetExecutionContext,
        config: ArchivesConfig,
        workspace: WorkspaceResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.MaterializeResult:
        """The archive of one month of one list, as fetched: bytes in the archive store, and a row
        with digest, version, dialect and message count in Postgres. A month without an archive at
        the source is empty and says so. `removed_upstream` has messages that an archive no longer
        holds.
        """
        with workspace.open(context) as opened:

            def fetch(month: ListMonth) -> Outcome:
                source = archive_source.of(month.list_name)
                dialect = lists[month.list_name].dialect
                options = FetchOptions(dialect, config.allow_loss, keep_days, config.rebuild)
                return fetch_archive(opened, month, source, options)

            return materialize_table(context, opened, fetch, rows="found", retries=RETRIES)

    return mbox_archives


def build_messages(
    partitions: dg.MultiPartitionsDefinition, lists: Mapping[str, MailingList]
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("mbox_archives")],
        tags={"layer": "ingest"},
        kinds={"postgres"},
        metadata=describe_asset("messages"),
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

            return materialize_table(context, opened, load, rows="stored")

    return messages


@dg.asset(
    key_prefix=PREFIX,
    deps=[asset_key("messages")],
    tags={"layer": "text"},
    kinds={"postgres"},
    metadata=describe_asset("threads"),
    backfill_policy=WHOLE,
    code_version=THREADS_VERSION,
)
def threads(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per message, and per missing message that others refer to: its thread, parent,
    depth and position. Unpartitioned: a reply is often in a later month or on another
    list, and the result depends on the set of messages only.
    """
    with workspace.open(context) as opened:
        outcome = build_threads(opened.connection, opened.log, rebuild=config.rebuild)
        rows = int(outcome.counts["messages"] + outcome.counts["ghosts"])
        about = table_metadata(opened.connection, "threads", rows)
    return dg.MaterializeResult(
        metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
    )


def build_thread_summaries(maker: str) -> dg.AssetsDefinition:
    """Build the asset; `maker` is the fingerprint of the maker of summaries."""

    @dg.asset(
        key_prefix=PREFIX,
        deps=[asset_key("messages"), asset_key("threads")],
        tags={"layer": "text"},
        kinds={"postgres"},
        metadata=describe_asset("thread_summaries"),
        backfill_policy=WHOLE,
        code_version=maker,
    )
    def thread_summaries(
        context: dg.AssetExecutionContext,
        config: RebuildConfig,
        workspace: WorkspaceResource,
        summaries: SummariesResource,
    ) -> dg.MaterializeResult:
        """One row per thread: the question or proposal, the answers and the decision, in sentences
        that each name the message and the characters they come from; who took part, when, and which
        messages have patches. Only threads that changed are summarized again.
        """
        with workspace.open(context) as opened, summaries.open() as maker:
            outcome = summarize_threads(
                opened.connection, maker, opened.log, opened.workers, rebuild=config.rebuild
            )
            rows = int(outcome.counts["summaries"])
            about = table_metadata(opened.connection, "thread_summaries", rows)
        if outcome.note:
            context.log.warning("threads were left for the next run: %s", outcome.note)
            about["note"] = outcome.note
        return dg.MaterializeResult(
            metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
        )

    return thread_summaries
