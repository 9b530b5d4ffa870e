"""`thread_summaries`: what each thread is about, in sentences that name their messages."""

from collections.abc import Sequence

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns, table_metadata
from mail_assets.defs.partitions import PREFIX, asset_key
from mail_assets.defs.resources import SummariesResource, WorkspaceResource
from mail_assets.search.snippets import escape_markdown
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.tables.thread_summaries import ThreadSummary, list_newest


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
