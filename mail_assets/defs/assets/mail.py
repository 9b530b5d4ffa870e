"""`messages`: the rows of every message of an archive.

[mbox_archives] `mbox_source` and `mbox_archives`: the archives outside, and as fetched.

[threads] `threads`: who answers whom, over the whole corpus.

[thread_summaries] `thread_summaries`: what each thread is about, in sentences that name their messages.
"""

from collections.abc import Mapping, Sequence

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.months import (
    materialize_table,
    sample_metadata,
    table_columns,
    table_metadata,
)
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import ArchiveSourceResource, SummariesResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.search.response import escape_markdown
from mail_assets.settings.lists import MailingList
from mail_assets.steps.build_threads import THREADS_VERSION, build_threads
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import MESSAGES_VERSION, load_messages
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.tables.thread_summaries import ThreadSummary, list_newest


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
        metadata=table_columns("messages"),
        code_version=MESSAGES_VERSION,
    )
    def messages(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        """One row per message of a list's month: headers repaired, body as text, segments
        (new text, quotes, signatures, patches), identifiers, full-text index. What cannot be
        read is in `quarantine`, what was forgotten in `removed_messages`, without its text;
        found = stored + duplicates + quarantined + removed.
        """
        with workspace.open(context) as opened:

            def load(month: ListMonth) -> Outcome:
                return load_messages(opened, month, lists[month.list_name].defaults)

            return materialize_table(context, opened, load, rows="stored")

    return messages


mbox_source = dg.AssetSpec(
    asset_key("mbox_source"),
    tags={"layer": "outside"},
    kinds={"file"},
    description="The list's monthly mbox archives where they are published: a folder, "
    "an HTTP server or an S3 prefix, by lists.toml.",
)

#: A server that was down for a moment; the source itself has tried for a minute already.
RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)


class ArchivesConfig(dg.Config):
    """Run configuration of mbox_archives."""

    allow_loss: bool = Field(
        default=False,
        description="accept an archive that vanished, lost more than a few per cent of its "
        "messages since it was fetched last, or is of another list",
    )


def build_mbox_archives(
    partitions: dg.MultiPartitionsDefinition, lists: Mapping[str, MailingList], keep_days: int
) -> dg.AssetsDefinition:
    """Build the asset for the lists of lists.toml; former archives are kept for some days."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[mbox_source],
        tags={"layer": "ingest"},
        kinds={"file", "postgres"},
        metadata=table_columns("mbox_archives"),
        code_version="1",
        retry_policy=RETRIES,
    )
    def mbox_archives(
        context: dg.AssetExecutionContext,
        config: ArchivesConfig,
        workspace: WorkspaceResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.MaterializeResult:
        """The archive of one month of one list, as fetched: bytes in the archive store,
        a row with digest, version, dialect and message count in Postgres. A month the source
        has no archive for is empty and says so; messages that an archive no longer holds are in
        `removed_upstream`.
        """
        with workspace.open(context) as opened:

            def fetch(month: ListMonth) -> Outcome:
                source = archive_source.of(month.list_name)
                options = FetchOptions(lists[month.list_name].dialect, config.allow_loss, keep_days)
                return fetch_archive(opened, month, source, options)

            return materialize_table(context, opened, fetch, rows="found")

    return mbox_archives


@dg.asset(
    key_prefix=PREFIX,
    deps=[asset_key("messages")],
    tags={"layer": "text"},
    kinds={"postgres"},
    metadata=table_columns("threads"),
    code_version=THREADS_VERSION,
)
def threads(
    context: dg.AssetExecutionContext, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """One row per message, and per missing message that others refer to: its thread, parent,
    depth and position. Unpartitioned: a reply is often in a later month or on another
    list, and the result depends on the set of messages only.
    """
    with workspace.open(context) as opened:
        outcome = build_threads(opened.connection, opened.log)
        rows = int(outcome.counts["messages"] + outcome.counts["ghosts"])
        about = table_metadata(opened.connection, "threads", rows)
        if workspace.samples:
            about |= sample_metadata(opened.connection, "threads", None)
    return dg.MaterializeResult(
        metadata={**outcome.counts, **about}, data_version=dg.DataVersion(outcome.digest[:32])
    )


def build_thread_summaries(maker: str) -> dg.AssetsDefinition:
    """Build the asset; `maker` is the fingerprint of what makes summaries."""

    @dg.asset(
        key_prefix=PREFIX,
        deps=[asset_key("messages"), asset_key("threads")],
        tags={"layer": "text"},
        kinds={"postgres"},
        metadata=table_columns("thread_summaries"),
        code_version=maker,
    )
    def thread_summaries(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        summaries: SummariesResource,
    ) -> dg.MaterializeResult:
        """One row per thread: what was asked or proposed, what was said, what was decided, in
        sentences that each name the message and the characters that carry it; who took part, when,
        and which messages have patches. A thread that changed is summarized again, no other.
        """
        with workspace.open(context) as opened, summaries.open() as maker:
            outcome = summarize_threads(opened.connection, maker, opened.log, opened.workers)
            rows = int(outcome.counts["summaries"])
            about = table_metadata(opened.connection, "thread_summaries", rows)
            examples = list_newest(opened.connection) if workspace.samples else []
        if outcome.note:
            context.log.warning("threads were left for the next run: %s", outcome.note)
        return dg.MaterializeResult(
            metadata={**outcome.counts, **about, **_note(outcome), **_sample(examples)},
            data_version=dg.DataVersion(outcome.digest[:32]),
        )

    return thread_summaries


def _note(outcome: Outcome) -> dict[str, str]:
    return {"note": outcome.note} if outcome.note else {}


def _sample(examples: Sequence[ThreadSummary]) -> dict[str, dg.MarkdownMetadataValue]:
    """Return a few summaries to read, as the sample of what a run has made."""
    if not examples:
        return {}
    return {"sample": dg.MetadataValue.md("\n\n".join(map(_as_markdown, examples)))}


def _as_markdown(summary: ThreadSummary) -> str:
    days = f"{summary.first_sent_at:%Y-%m-%d} to {summary.last_sent_at:%Y-%m-%d}"
    thread, people = map(escape_markdown, (summary.thread_id, ", ".join(summary.participants)))
    sentences = (
        f"- *{one['part']}*: {escape_markdown(one['text'])} ({escape_markdown(one['message_id'])})"
        for one in summary.sentences
    )
    head = f"**{thread}**, {summary.messages} messages, {days}, by {people}"
    return "\n".join([head, "", *sentences])
