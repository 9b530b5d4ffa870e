"""Checks of `vectors`: the bucket holds the chunks of each month, and nothing forgotten."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Verdict, check_months
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.store import StoreResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.month import ListMonth
from mail_assets.steps.write_vectors import bucket_keys
from mail_assets.store.embeddings import file_key, read_vectors
from mail_assets.tables.checks import (
    chunk_keys,
    count_rows_left,
    count_threads_left,
    read_key_prefixes,
)
from mail_assets.tables.manifest import read_manifest
from mail_assets.tables.removals import read_forgotten, read_text_hashes, unwanted_keys


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def keys_agree(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Keys in the bucket = keys in the manifest = chunks."""
    mail_index = vector_bucket.open_index(encoder)
    with database.connect("checks", context.run.run_id) as connection:

        def look(month: ListMonth) -> Verdict:
            chunks = chunk_keys(connection, month)
            entries = read_manifest(connection, mail_index.part(month))
            manifest = {key for key, entry in entries.items() if entry.written}
            bucket = bucket_keys(mail_index.index, month, chunks | manifest)
            facts = {
                "chunks": len(chunks),
                "manifest": len(manifest),
                "bucket": len(bucket),
                "missing": len(chunks - bucket),
                "stale": len(bucket - chunks),
            }
            return chunks == manifest == bucket and len(entries) == len(manifest), facts

        return check_months(context, look, dg.AssetCheckSeverity.ERROR)


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
    files = store.open()
    most = encoder.model.sizes.max_chunks
    with database.connect("checks", context.run.run_id) as connection:
        forgotten = read_forgotten(connection)
        # of all months: an index that was out of reach, with whatever bucket or encoder
        unwanted = sum(map(len, unwanted_keys(connection).values()))
        threads = count_threads_left(connection, forgotten) if any(forgotten) else 0

        def look(month: ListMonth) -> Verdict:
            if not any(forgotten):
                return True, {"rows": 0, "threads": 0, "texts": 0, "vectors": 0}
            texts = read_text_hashes(connection, month)
            held = read_vectors(files, file_key(month, encoder.fingerprint)).keys()
            prefixes = read_key_prefixes(connection, month)
            keys = index.get(f"{prefix}#{n}" for prefix in prefixes for n in range(most))
            facts = {
                "rows": count_rows_left(connection, month, forgotten),
                "threads": threads,
                "texts": len(held - texts) if prefixes else 0,
                "vectors": len(keys) + unwanted,
            }
            return not any(facts.values()), facts

        return check_months(context, look, dg.AssetCheckSeverity.ERROR)
