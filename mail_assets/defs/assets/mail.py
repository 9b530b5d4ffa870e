"""The assets of mail: archives outside and as fetched, messages, threads and their summaries.

An asset is thin: it opens its resources, calls a function of steps/ and records the result.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Mapping

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.months import (
    RebuildConfig,
    mail_asset,
    materialize_table,
    record_table,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import ArchiveSourceResource, SummariesResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.settings.lists import MailingList
from mail_assets.steps.build_threads import THREADS_VERSION, build_threads
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import MESSAGES_VERSION, load_messages
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.tables.messages import settle_rows

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

    @mail_asset(
        "mbox_source",
        layer="ingest",
        partitions=partitions,
        kinds={"file", "postgres"},
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

    @mail_asset(
        "mbox_archives",
        layer="ingest",
        partitions=partitions,
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
            settle_rows(opened.connection)  # after each month it takes three times as long
            return made

    return messages


@mail_asset("messages", layer="text", kinds={"postgres"}, code_version=THREADS_VERSION)
def threads(
    context: dg.AssetExecutionContext, config: RebuildConfig, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per message, and per missing message that others refer to: its thread, parent,
    depth and position. Unpartitioned: a reply is often in a later month or on another
    list, and the result depends on the set of messages only.
    """
    with workspace.open(context) as opened:
        outcome = build_threads(opened.connection, opened.log, rebuild=config.rebuild)
        return record_table(opened.connection, "threads", outcome, "messages", "ghosts")


def build_thread_summaries(maker: str) -> dg.AssetsDefinition:
    """Build the asset; `maker` is the fingerprint of the maker of summaries."""

    @mail_asset("messages", "threads", layer="text", kinds={"postgres"}, code_version=maker)
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
            if outcome.note:
                context.log.warning("threads were left for the next run: %s", outcome.note)
            return record_table(opened.connection, "thread_summaries", outcome, "summaries")

    return thread_summaries
