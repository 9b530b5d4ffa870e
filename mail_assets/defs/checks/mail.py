"""The checks of archives, messages, threads and summaries, and that forgotten mail stays away."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    ERROR,
    WARN,
    CheckedMonth,
    Results,
    check_months,
    judge_each,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import (
    DatabaseResource,
    EncoderResource,
    StoreResource,
    VectorBucketResource,
    WordsResource,
)
from mail_assets.indexes.words import MailWords
from mail_assets.mail.archive.dialects import contradicts
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_hashes
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.checks import (
    MessageCounts,
    SummaryAges,
    SummarySentences,
    Undated,
    Unthreaded,
    count_undated,
    count_unthreaded,
    count_wrong_sentences,
    read_dialects,
    read_message_counts,
    read_summary_ages,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.tables.removed_messages import (
    count_rows_left,
    count_threads_left,
    read_key_prefixes,
    read_text_hashes,
    unwanted_documents,
    unwanted_keys,
)
from mail_assets.words.index import MissingWordsError


@dg.asset_check(asset=asset_key("mbox_archives"))
def dialect_fits(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Archives are in the dialect that lists.toml sets. Otherwise set `better` there, the dialect
    found, or leave the dialect out.
    """
    return check_months(context, database, judge_each(read_dialects, _judge_dialect), WARN)


def _judge_dialect(dialects: tuple[str, str]) -> CheckedMonth:
    dialect, found = dialects
    return CheckedMonth(not contradicts(dialect, found), {"dialect": dialect, "better": found})


@dg.asset_check(asset=asset_key("messages"), blocking=True)
def accounted_for(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Every message found in the archive is stored, a duplicate, quarantined or removed, and
    an archive that is not empty has messages.
    """
    return check_months(context, database, judge_each(read_message_counts, _judge_balance), ERROR)


def _judge_balance(counts: MessageCounts) -> CheckedMonth:
    reason = ""
    if counts.empty:
        reason = f"the archive has {counts.unpacked_bytes} bytes and no message was found in them"
    elif not counts.balanced:
        reason = f"{counts.found} messages were found and {counts.accounted} are accounted for"
    return CheckedMonth(not reason, counts._asdict(), reason)


#: Share in quarantine above which a month deserves a look; a clean list has less than 0.1 %.
MAX_QUARANTINED = 0.01


@dg.asset_check(asset=asset_key("messages"))
def few_quarantined(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Few messages are in quarantine."""
    return check_months(
        context, database, judge_each(read_message_counts, _judge_quarantined), WARN
    )


def _judge_quarantined(counts: MessageCounts) -> CheckedMonth:
    share = counts.quarantined / max(1, counts.found)
    return CheckedMonth(share <= MAX_QUARANTINED, {**counts._asdict(), "share": round(share, 4)})


#: Share of repaired dates above which a month deserves a look; a clean list has less than 1 %.
MAX_UNDATED = 0.05


@dg.asset_check(asset=asset_key("messages"))
def few_undated(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Few messages have a date that does not come from their Date header."""
    return check_months(context, database, judge_each(count_undated, _judge_undated), WARN)


def _judge_undated(counts: Undated) -> CheckedMonth:
    share = counts.undated / max(1, counts.total)
    figures = {"undated": counts.undated, "messages": counts.total, "share": round(share, 4)}
    # a single message proves nothing
    return CheckedMonth(share <= MAX_UNDATED or counts.undated <= 1, figures)


#: Share of replies without a reference above which a month deserves a look.
MAX_UNTHREADED = 0.05


@dg.asset_check(asset=asset_key("threads"))
def few_unthreaded(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """All messages are in threads, and few that are replies by their subject refer to nothing.

    The months of messages that have changed are checked: threads have no months.
    """
    return check_months(
        context,
        database,
        judge_each(count_unthreaded, _judge_unthreaded),
        WARN,
        months_of="messages",
    )


def _judge_unthreaded(counts: Unthreaded) -> CheckedMonth:
    share = counts.replies_without_reference / max(1, counts.messages)
    # a single message proves nothing
    few = share <= MAX_UNTHREADED or counts.replies_without_reference <= 1
    figures = {**counts._asdict(), "share": round(share, 4)}
    return CheckedMonth(few and not counts.not_in_threads, figures)


@dg.asset_check(asset=asset_key("thread_summaries"), blocking=True)
def sentences_stand(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
    """Each sentence of a summary stands in a message of its thread, at the characters it names."""
    return check_months(
        context,
        database,
        judge_each(count_wrong_sentences, _judge_sentences),
        ERROR,
        months_of="messages",
    )


def _judge_sentences(sentences: SummarySentences) -> CheckedMonth:
    return CheckedMonth(not sentences.wrong, sentences._asdict())


@dg.asset_check(asset=asset_key("thread_summaries"))
def summaries_current(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> Results:
    """Each thread has a summary that is not older than the thread, and none was left waiting."""
    return check_months(
        context, database, judge_each(read_summary_ages, _judge_ages), WARN, months_of="messages"
    )


def _judge_ages(ages: SummaryAges) -> CheckedMonth:
    current = not (ages.outdated or ages.missing or ages.waiting)
    return CheckedMonth(current, ages._asdict())


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def forgotten_stay_forgotten(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
    words: WordsResource,
) -> Results:
    """Forgotten mail is in no row, no file of embeddings and no index."""
    index = vector_bucket.open_index(encoder).index
    files, most_chunks = store.open(), encoder.model.sizes.max_chunks
    mail_words = words.open()

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        forgotten = read_forgotten(connection, database.key_source)
        if forgotten.is_empty:
            return dict.fromkeys(months, NOTHING)
        results: dict[ListMonth, CheckedMonth] = {}
        for month in months:
            # of all indexes, also of those that were out of reach or belong to another encoder
            unwanted = sum(map(len, unwanted_keys(connection, month).values()))
            unwanted_words = sum(map(len, unwanted_documents(connection, month).values()))
            rows = count_rows_left(connection, month, forgotten)
            threads = count_threads_left(connection, month, forgotten)
            prefixes = read_key_prefixes(connection, month)
            keys = index.get(f"{prefix}#{n}" for prefix in prefixes for n in range(most_chunks))
            file = file_key(month, encoder.fingerprint)
            texts = _count_texts_left(connection, files, file, month) if prefixes else 0
            documents = _count_documents_left(mail_words, month, prefixes)
            results[month] = _judge(
                {
                    "rows": rows,
                    "threads": threads,
                    "texts": texts,
                    "vectors": len(keys) + unwanted,
                    "documents": documents + unwanted_words,
                }
            )
        return results

    return check_months(context, database, find, ERROR)


def _count_texts_left(
    connection: psycopg.Connection, files: ObjectStore, file: str, month: ListMonth
) -> int:
    # texts that no chunk of the month has
    return len({*read_hashes(files, file)} - read_text_hashes(connection, month))


def _count_documents_left(words: MailWords, month: ListMonth, prefixes: list[str]) -> int:
    if not prefixes:
        return 0
    try:
        return len(words.month_keys(month, prefixes).keys() & {*prefixes})
    except MissingWordsError:
        return 0


def _judge(figures: dict[str, int]) -> CheckedMonth:
    return CheckedMonth(not any(figures.values()), figures)


NOTHING = _judge(dict.fromkeys(("rows", "threads", "texts", "vectors", "documents"), 0))
