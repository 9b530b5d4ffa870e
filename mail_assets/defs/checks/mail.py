"""The checks of archives, mail, threads, patches, commits and summaries, and of forgotten mail."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    ERROR,
    WARN,
    CheckedMonth,
    CheckedMonths,
    Results,
    check_months,
    month_check,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import (
    DatabaseResource,
    EncoderResource,
    StoreResource,
    VectorBucketResource,
    WordsResource,
)
from mail_assets.mail.archive.mbox import contradicts
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_hashes
from mail_assets.tables.checks import (
    CommitCounts,
    Dialects,
    LinkCounts,
    MessageCounts,
    PatchCounts,
    SeriesCounts,
    SummaryAges,
    SummarySentences,
    Undated,
    Unthreaded,
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


@month_check("mbox_archives", Dialects, WARN)
def dialect_fits(dialects: Dialects) -> bool:
    """Archives are in the dialect that lists.toml sets. If not, set the detected dialect `better`
    there, or remove the key `dialect`.
    """
    return not contradicts(*dialects)


@month_check("messages", MessageCounts, ERROR)
def accounted_for(counts: MessageCounts) -> CheckedMonth:
    """Every message found in the archive is stored, a duplicate, quarantined or removed, and
    an archive that is not empty has messages.
    """
    reason = ""
    if counts.empty:
        reason = f"no message was found in the {counts.unpacked_bytes} bytes of the archive"
    elif not counts.balanced:
        reason = f"{counts.found} messages were found and {counts.accounted} are accounted for"
    return CheckedMonth(not reason, counts._asdict(), reason)


#: Share of messages in quarantine above which to warn; a clean list has less than 0.1 %.
MAX_QUARANTINED = 0.01


@month_check("messages", MessageCounts, WARN)
def few_quarantined(counts: MessageCounts) -> CheckedMonth:
    """Few messages are in quarantine."""
    return _judge_share(counts._asdict(), counts.quarantined, counts.found, MAX_QUARANTINED)


def _judge_share(
    figures: Mapping[str, Any], some: int, whole: int, most: float, proves_nothing: bool = False
) -> CheckedMonth:
    """Return the result of a check that a share is small; it passes if it `proves_nothing`."""
    share = some / max(1, whole)
    return CheckedMonth(share <= most or proves_nothing, {**figures, "share": round(share, 4)})


#: Share of repaired dates above which to warn; a clean list has less than 1 %.
MAX_UNDATED = 0.05


@month_check("messages", Undated, WARN)
def few_undated(counts: Undated) -> CheckedMonth:
    """Few messages have a date that does not come from their Date header."""
    undated, single = counts.undated, counts.undated <= 1
    return _judge_share(counts._asdict(), undated, counts.messages, MAX_UNDATED, single)


#: Share of replies that belong to no thread above which to warn.
MAX_UNTHREADED = 0.05


@month_check("threads", Unthreaded, WARN, months_of="messages")
def few_unthreaded(counts: Unthreaded) -> CheckedMonth:
    """All messages are in threads. Few replies are without references and joined no thread by
    subject. The changed months of messages are checked, because threads have no months.
    """
    orphans, single = counts.replies_without_reference, counts.replies_without_reference <= 1
    judged = _judge_share(counts._asdict(), orphans, counts.messages, MAX_UNTHREADED, single)
    return judged._replace(passed=judged.passed and not counts.not_in_threads)


@month_check("thread_summaries", SummarySentences, ERROR, months_of="messages")
def sentences_stand(sentences: SummarySentences) -> bool:
    """Each sentence of a summary is in a message of its thread, at the recorded characters."""
    return not sentences.wrong


@month_check("thread_summaries", SummaryAges, WARN, months_of="messages")
def summaries_current(ages: SummaryAges) -> bool:
    """Each thread has a summary that is not older than the thread; no thread waits for one."""
    return not (ages.outdated or ages.missing or ages.waiting)


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
    files, most_chunks = store.open(), encoder.sizes.max_chunks
    mail_words = words.open()

    def find(connection: psycopg.Connection, months: Sequence[ListMonth]) -> CheckedMonths:
        forgotten = read_forgotten(connection, database.key_source)
        if forgotten.is_empty:
            return dict.fromkeys(months, NOTHING)
        results: dict[ListMonth, CheckedMonth] = {}
        for month in months:
            # in all indexes, also those of other encoders, and those that could not be reached
            unwanted = sum(map(len, unwanted_keys(connection, month).values()))
            unwanted_words = sum(map(len, unwanted_documents(connection, month).values()))
            rows = count_rows_left(connection, month, forgotten)
            threads = count_threads_left(connection, month, forgotten)
            prefixes = read_key_prefixes(connection, month)
            keys = index.get(f"{prefix}#{n}" for prefix in prefixes for n in range(most_chunks))
            texts = documents = 0
            if prefixes:
                embedded = {*read_hashes(files, file_key(month, encoder.fingerprint))}
                texts = len(embedded - read_text_hashes(connection, month))
                with suppress(MissingWordsError):
                    found = mail_words.month_keys(month, prefixes)
                    documents = len(found.keys() & {*prefixes})
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


def _judge(figures: dict[str, int]) -> CheckedMonth:
    return CheckedMonth(not any(figures.values()), figures)


NOTHING = _judge(dict.fromkeys(("rows", "threads", "texts", "vectors", "documents"), 0))


#: Share of malformed patches above which to warn; lists of developers have 2 %.
MAX_MALFORMED = 0.25

#: Fewest patches for which the share is meaningful.
ENOUGH_PATCHES = 20


@month_check("patches", PatchCounts, ERROR)
def patches_accounted_for(counts: PatchCounts) -> bool:
    """Every message with lines of a diff or an attached patch has a row, or was read and contains
    no patch, for example only a diffstat.
    """
    return counts.balanced


@month_check("patches", PatchCounts, WARN)
def few_malformed(counts: PatchCounts) -> CheckedMonth:
    """Git refuses few patches."""
    too_few = counts.rows < ENOUGH_PATCHES
    return _judge_share(counts._asdict(), counts.malformed, counts.rows, MAX_MALFORMED, too_few)


@month_check("commits", CommitCounts, ERROR)
def commits_counted(counts: CommitCounts) -> bool:
    """A month has as many stored commits as were read. `rebuild` repairs a month that fails."""
    return counts.rows == counts.recorded


@month_check("patch_series", SeriesCounts, ERROR, months_of="patches")
def series_complete(counts: SeriesCounts) -> bool:
    """Each patch is in a series. The changed months of patches are checked."""
    return not counts.without_series


@month_check("commit_links", LinkCounts, ERROR, months_of="commits")
def links_stand(counts: LinkCounts) -> bool:
    """A month has as many links of commits as were made, and each leads to a message. The changed
    months of commits are checked. `rebuild` repairs a month that fails.
    """
    return counts.right
