"""The check of `vectors` that nothing forgotten has come back, in whatever place."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import (
    DatabaseResource,
    EncoderResource,
    StoreResource,
    VectorBucketResource,
    WordsResource,
)
from mail_assets.month import ListMonth
from mail_assets.steps.word_index import MailWords
from mail_assets.store.embeddings import file_key, read_hashes
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.forgotten_left import (
    count_rows_left,
    count_threads_left,
    read_key_prefixes,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.tables.removed_messages import (
    read_text_hashes,
    unwanted_documents,
    unwanted_keys,
)
from mail_assets.words.errors import MissingWordsError


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def forgotten_stay_forgotten(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
    words: WordsResource,
) -> dg.AssetCheckResult:
    """What was forgotten is in no row, no file of embeddings and no index."""
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
            # of all indexes: one that was out of reach, with whatever bucket or encoder
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

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _count_texts_left(
    connection: psycopg.Connection, files: ObjectStore, file: str, month: ListMonth
) -> int:
    """Count the vectors of a file whose texts no chunk of the month has."""
    return len({*read_hashes(files, file)} - read_text_hashes(connection, month))


def _count_documents_left(words: MailWords, month: ListMonth, prefixes: list[str]) -> int:
    """Count the documents of removed messages, whose keys are the prefixes, in the word index."""
    if not prefixes:
        return 0
    try:
        return len(words.month_keys(month).keys() & {*prefixes})
    except MissingWordsError:
        return 0


def _judge(figures: dict[str, int]) -> CheckedMonth:
    """Return what is left of forgotten messages, which should be nothing."""
    return CheckedMonth(not any(figures.values()), figures)


NOTHING = _judge(dict.fromkeys(("rows", "threads", "texts", "vectors", "documents"), 0))
