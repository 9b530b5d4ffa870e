"""Checks of months: each looks at the months of its run, or at all where it is run alone, and names
those that fail.

What does not live here: what is checked of the index as a whole (index.py), and what is asked of
Postgres (store/checks.py).
"""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from mail_assets.partitions import Archive, archive_keys
from mail_assets.resources.archives import StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.resources.vector_bucket import VectorBucketResource
from mail_assets.steps.vectors import bucket_keys, index_spec, shelf_of
from mail_assets.store import checks as ask
from mail_assets.store.embeddings import file_fingerprint, file_key, read_vectors
from mail_assets.store.manifest import read_manifest
from mail_assets.store.partitions import Partition, read_state
from mail_assets.store.removals import read_forgotten, read_text_hashes, unwanted_keys

#: Shares above which a month deserves a look. A clean technical list has less than 0.1 %
#: in quarantine and 1 % repaired dates; a spam corpus has 6 %.
MAX_QUARANTINED, MAX_UNDATED, MAX_UNTHREADED = 0.01, 0.05, 0.05

#: Mean tokens of a month's chunks, as a share of the encoder's target: outside of it the
#: chunker or the segmenter has probably met something new.
TOKENS_LOW, TOKENS_HIGH = 0.15, 1.25

#: A mean over fewer chunks says nothing.
ENOUGH_CHUNKS = 50

Facts = Mapping[str, Any]


def _of_months(
    context: dg.AssetCheckExecutionContext,
    look: Callable[[Archive], tuple[bool, Facts]],
    severity: dg.AssetCheckSeverity,
) -> dg.AssetCheckResult:
    """Look at each month; list those that fail, or the figures of all."""
    seen = {archive: look(archive) for archive in _months(context)}
    failed = {archive: facts for archive, (passed, facts) in seen.items() if not passed}
    shown = failed or {archive: facts for archive, (_, facts) in seen.items()}
    records = [
        dg.TableRecord({"archive": str(archive), **facts}) for archive, facts in shown.items()
    ]
    return dg.AssetCheckResult(
        passed=not failed,
        severity=severity,
        description=f"failed: {', '.join(map(str, failed))}" if failed else None,
        metadata={"months": dg.MetadataValue.table(records), "failed_months": len(failed)},
    )


def _months(context: dg.AssetCheckExecutionContext) -> list[Archive]:
    """Return the months of the run; without its asset a check runs without months, and looks
    at all that were ever materialized.
    """
    if context.has_partition_key or context.has_partition_key_range:
        return archive_keys(context)
    [check] = context.op_execution_context.selected_asset_check_keys
    keys = context.instance.get_materialized_partitions(check.asset_key)
    return [Archive(*key.split("|")) for key in sorted(keys)]


@dg.asset_check(asset="messages", blocking=True)
def accounted_for(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Every message found in the archive is stored, a duplicate, quarantined or removed, and
    an archive that is not empty has messages.
    """
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            account = ask.read_account(connection, archive.list, archive.month)
            return account.balanced and not account.empty, account._asdict()

        return _of_months(context, look, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="messages")
def few_quarantined(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are in quarantine."""
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            account = ask.read_account(connection, archive.list, archive.month)
            share = account.quarantined / max(1, account.found)
            return share <= MAX_QUARANTINED, {**account._asdict(), "share": round(share, 4)}

        return _of_months(context, look, dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset="messages")
def few_undated(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages have a date that had to be taken from elsewhere than their Date header."""
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            undated, total = ask.count_undated(connection, archive.list, archive.month)
            share = undated / max(1, total)
            facts = {"undated": undated, "messages": total, "share": round(share, 4)}
            # one message of a small month proves nothing
            return share <= MAX_UNDATED or undated <= 1, facts

        return _of_months(context, look, dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset="threads")
def few_unthreaded(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """Few messages are replies by their subject but refer to nothing; all are in threads."""
    with database.connect("checks", context.run.run_id) as connection:
        orphans, unknown, total = ask.count_unthreaded(connection)
    share = orphans / max(1, total)
    return dg.AssetCheckResult(
        passed=unknown == 0 and share <= MAX_UNTHREADED,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "replies_without_reference": orphans,
            "not_in_threads": unknown,
            "messages": total,
            "share": round(share, 4),
        },
    )


@dg.asset_check(asset="chunks", blocking=True)
def spans_point_into_bodies(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """The text of each chunk is exactly what its spans cut out of its message's body."""
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            wrong = ask.count_wrong_spans(connection, archive.list, archive.month)
            return wrong == 0, {"wrong": wrong}

        return _of_months(context, look, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="chunks")
def tokens_in_range(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, encoder: EncoderResource
) -> dg.AssetCheckResult:
    """Chunks have about as many tokens as the encoder wants, and never more than it takes."""
    sizes = encoder.profile.sizes
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            tokens = ask.read_tokens(connection, archive.list, archive.month)
            usual = TOKENS_LOW <= tokens.mean / sizes.target <= TOKENS_HIGH
            passed = tokens.most <= sizes.max_tokens and (usual or tokens.chunks < ENOUGH_CHUNKS)
            return passed, {**tokens._asdict(), "mean": round(tokens.mean, 1)}

        return _of_months(context, look, dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset="embeddings", blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> dg.AssetCheckResult:
    """The vectors that are about to enter the index were all made by the encoder whose
    fingerprint its name carries.
    """
    files = store.open()
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            state = read_state(connection, Partition("embeddings", archive.list, archive.month))
            texts = int(state.counts["texts"]) if state else 0
            key = file_key(archive.list, archive.month, encoder.fingerprint)
            found = file_fingerprint(files, key) if files.exists(key) else "no file"
            wanted = encoder.fingerprint if texts else "no file"
            facts = {"texts": texts, "fingerprint": found, "wanted": wanted}
            return state is not None and found == wanted, facts

        return _of_months(context, look, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="vectors", blocking=True)
def keys_agree(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Keys in the bucket = keys in the manifest = chunks."""
    spec = index_spec(encoder.name, encoder.precision)
    index = vector_bucket.open().index(spec)
    with database.connect("checks", context.run.run_id) as connection:

        def look(archive: Archive) -> tuple[bool, Facts]:
            chunks = ask.chunk_keys(connection, archive.list, archive.month)
            shelf = shelf_of(vector_bucket.url, spec, archive.list, archive.month)
            entries = read_manifest(connection, shelf)
            manifest = {key for key, entry in entries.items() if entry.written}
            bucket = bucket_keys(index, archive.list, archive.month, chunks | manifest)
            facts = {
                "chunks": len(chunks),
                "manifest": len(manifest),
                "bucket": len(bucket),
                "missing": len(chunks - bucket),
                "stale": len(bucket - chunks),
            }
            return chunks == manifest == bucket and len(entries) == len(manifest), facts

        return _of_months(context, look, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="vectors", blocking=True)
def forgotten_stay_forgotten(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """What was forgotten is in no row, no file of embeddings and no index."""
    spec = index_spec(encoder.name, encoder.precision)
    index = vector_bucket.open().index(spec)
    files = store.open()
    most = encoder.profile.sizes.max_chunks
    with database.connect("checks", context.run.run_id) as connection:
        forgotten = read_forgotten(connection)
        # of all months: an index that was out of reach, with whatever bucket or encoder
        unwanted = sum(map(len, unwanted_keys(connection).values()))
        threads = ask.count_threads_left(connection, forgotten) if any(forgotten) else 0

        def look(archive: Archive) -> tuple[bool, Facts]:
            if not any(forgotten):
                return True, {"rows": 0, "threads": 0, "texts": 0, "vectors": 0}
            place = (archive.list, archive.month)
            texts = read_text_hashes(connection, *place)
            held = read_vectors(files, file_key(*place, encoder.fingerprint)).keys()
            prefixes = ask.read_key_prefixes(connection, *place)
            keys = index.get(f"{prefix}#{n}" for prefix in prefixes for n in range(most))
            facts = {
                "rows": ask.count_rows_left(connection, *place, forgotten),
                "threads": threads,
                "texts": len(held - texts) if prefixes else 0,
                "vectors": len(keys) + unwanted,
            }
            return not any(facts.values()), facts

        return _of_months(context, look, dg.AssetCheckSeverity.ERROR)
