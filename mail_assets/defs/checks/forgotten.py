"""The check of `vectors` that nothing forgotten has come back, in whatever place."""

import dagster as dg
import psycopg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Finding, month_result, months_to_check
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.store import StoreResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_hashes
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.forgotten_left import (
    count_rows_left,
    count_threads_left,
    read_key_prefixes,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.tables.removed_messages import read_text_hashes, unwanted_keys


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def forgotten_stay_forgotten(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """What was forgotten is in no row, no file of embeddings and no index."""
    index = vector_bucket.open_index(encoder).index
    files, most_chunks = store.open(), encoder.model.sizes.max_chunks
    findings: dict[ListMonth, Finding] = {}
    with database.connect("checks", context.run.run_id) as connection:
        months = months_to_check(context)
        forgotten = read_forgotten(connection, database.key_source)
        if forgotten.is_empty:
            return month_result(dict.fromkeys(months, NOTHING), dg.AssetCheckSeverity.ERROR)
        # of all months: an index that was out of reach, with whatever bucket or encoder
        unwanted = sum(map(len, unwanted_keys(connection).values()))
        for month in months:
            rows = count_rows_left(connection, month, forgotten)
            threads = count_threads_left(connection, month, forgotten)
            prefixes = read_key_prefixes(connection, month)
            keys = index.get(f"{prefix}#{n}" for prefix in prefixes for n in range(most_chunks))
            file = file_key(month, encoder.fingerprint)
            texts = _count_texts_left(connection, files, file, month) if prefixes else 0
            findings[month] = _finding(rows, threads, texts, len(keys) + unwanted)
    return month_result(findings, dg.AssetCheckSeverity.ERROR)


def _count_texts_left(
    connection: psycopg.Connection, files: ObjectStore, file: str, month: ListMonth
) -> int:
    """Count the vectors of a file whose texts no chunk of the month has."""
    return len({*read_hashes(files, file)} - read_text_hashes(connection, month))


def _finding(rows: int, threads: int, texts: int, vectors: int) -> Finding:
    """Return what is left of forgotten messages, which should be nothing."""
    figures = {"rows": rows, "threads": threads, "texts": texts, "vectors": vectors}
    return Finding(not any(figures.values()), figures)


NOTHING = _finding(0, 0, 0, 0)
