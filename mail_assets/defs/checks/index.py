"""The check of `vectors` that the bucket holds the chunks of each month, and nothing else.

[words] The check of `words` that the index holds the messages of each month, and nothing else.

[chunks] Checks of `chunks`: spans are exact, and sizes suit the encoder.

[embeddings] The check of `embeddings`: one encoder made all vectors.

[reconciliation] What the checks of whole indexes have in common: a reconciliation as the result of a check.

[vector_index] The check of `vector_index`: the live index holds the keys of the chunks and no others.

The vectors of single months are checked in vectors.py.

[word_index] The check of `word_index`: the index holds the keys of the messages and no others.

The documents of single months are checked in words.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    CheckedMonth,
    KnownKeys,
    check_months,
    compare_months,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import (
    DatabaseResource,
    EncoderResource,
    StoreResource,
    VectorBucketResource,
    WordsResource,
)
from mail_assets.indexes.live import LifecycleError
from mail_assets.indexes.mail_index import MailIndex
from mail_assets.indexes.reconcile import Reconciliation, reconcile
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_fingerprint
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.checks import Tokens, chunk_keys, count_wrong_spans, read_tokens
from mail_assets.tables.indexes import live_index, read_manifest
from mail_assets.tables.partitions import Partition, State, read_state
from mail_assets.text.chunking import ChunkSizes


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def keys_agree(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Keys in the bucket = keys in the manifest = chunks."""
    mail_index = vector_bucket.open_index(encoder)

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        def read(month: ListMonth) -> KnownKeys:
            entries = read_manifest(connection, mail_index.part(month))
            return KnownKeys(chunk_keys(connection, month), entries)

        return compare_months(months, read, partial(_find_keys, mail_index), ("chunks", "bucket"))

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_keys(
    mail_index: MailIndex[Any], known: Mapping[ListMonth, KnownKeys]
) -> Mapping[ListMonth, Counter[str]]:
    return mail_index.find_keys({m: keys.wanted | keys.entries.keys() for m, keys in known.items()})


@dg.asset_check(asset=asset_key("words"), name="keys_agree", blocking=True)
def word_keys_agree(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, words: WordsResource
) -> dg.AssetCheckResult:
    """Keys in the index = keys in the manifest = messages."""
    mail_words = words.open()

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        def read(month: ListMonth) -> KnownKeys:
            messages = mail_words.read_digests(connection, month).keys()
            return KnownKeys(messages, read_manifest(connection, mail_words.part(month)))

        return compare_months(months, read, partial(_find_keys, mail_words), ("messages", "index"))

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


#: Mean tokens of a month's chunks, as a share of the encoder's target: outside of it the
#: chunker or the segmenter has probably met something new.
TOKENS_LOW, TOKENS_HIGH = 0.15, 1.25

#: A mean over fewer chunks says nothing.
ENOUGH_CHUNKS = 50


@dg.asset_check(asset=asset_key("chunks"), blocking=True)
def spans_point_into_bodies(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """The text of each chunk is exactly what its spans cut out of its message's body."""
    return check_months(context, database, _find_wrong_spans, dg.AssetCheckSeverity.ERROR)


def _find_wrong_spans(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = count_wrong_spans(connection, months)
    return {month: CheckedMonth(wrong == 0, {"wrong": wrong}) for month, wrong in counts.items()}


@dg.asset_check(asset=asset_key("chunks"))
def tokens_in_range(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, encoder: EncoderResource
) -> dg.AssetCheckResult:
    """Chunks have about as many tokens as the encoder wants, and never more than it takes."""
    sizes = encoder.model.sizes

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        tokens = read_tokens(connection, months)
        return {month: _find_sizes(one, sizes) for month, one in tokens.items()}

    return check_months(context, database, find, dg.AssetCheckSeverity.WARN)


def _find_sizes(tokens: Tokens, sizes: ChunkSizes) -> CheckedMonth:
    usual = TOKENS_LOW <= tokens.mean / sizes.target <= TOKENS_HIGH
    passed = tokens.most <= sizes.max_tokens and (usual or tokens.chunks < ENOUGH_CHUNKS)
    return CheckedMonth(passed, {**tokens._asdict(), "mean": round(tokens.mean, 1)})


@dg.asset_check(asset=asset_key("embeddings"), blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> dg.AssetCheckResult:
    """The vectors that are about to enter the index were all made by the encoder whose
    fingerprint its name carries.
    """
    files, fingerprint = store.open(), encoder.fingerprint

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        states = {month: read_state(connection, Partition("embeddings", month)) for month in months}
        return {
            month: _find_fingerprint(files, month, state, fingerprint)
            for month, state in states.items()
        }

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_fingerprint(
    files: ObjectStore, month: ListMonth, state: State | None, fingerprint: str
) -> CheckedMonth:
    texts = int(state.counts["texts"]) if state else 0
    key = file_key(month, fingerprint)
    found = read_fingerprint(files, key) if files.exists(key) else "no file"
    wanted = fingerprint if texts else "no file"
    figures = {"texts": texts, "fingerprint": found, "wanted": wanted}
    return CheckedMonth(state is not None and found == wanted, figures)


#: An emptied index has a fault in each of thousands of months.
MAX_RECORDS = 100

FAULT_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("fault", "string"),
        dg.TableColumn("list", "string"),
        dg.TableColumn("month", "string"),
        dg.TableColumn("keys", "int"),
        dg.TableColumn("examples", "string"),
    ]
)


def no_live_index(url: str) -> dg.AssetCheckResult:
    """Return the warning that there is nothing to look at yet."""
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"no live index in {url} yet; run `mail-assets backfill`",
    )


def reconciliation_result(found: Reconciliation) -> dg.AssetCheckResult:
    """Return what was found, with the faults as a table."""
    records = [
        dg.TableRecord({**fault.as_json(), "examples": ", ".join(fault.examples)})
        for fault in found.faults[:MAX_RECORDS]
    ]
    return dg.AssetCheckResult(
        passed=found.clean,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "index": found.index,
            **found.figures,
            **found.counts,
            "faults": dg.MetadataValue.table(records, FAULT_SCHEMA),
        },
    )


@dg.asset_check(
    asset=asset_key("vector_index"),
    blocking=True,
    # in a run of all assets it waits for the months that the run writes
    additional_deps=[asset_key("vectors")],
)
def reconciled(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """The live index holds the keys of the chunks, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    with database.connect("checks", context.run.run_id) as connection:
        if live_index(connection, vector_bucket.url) is None:
            return no_live_index(vector_bucket.url)
        try:
            mail_index = vector_bucket.open_live_index(connection, encoder)
        except LifecycleError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        return reconciliation_result(reconcile(connection, mail_index))


@dg.asset_check(
    asset=asset_key("word_index"),
    name="reconciled",
    blocking=True,
    # in a run of all assets it waits for the months that the run writes
    additional_deps=[asset_key("words")],
)
def words_reconciled(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, words: WordsResource
) -> dg.AssetCheckResult:
    """The word index holds the keys of the messages, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    with database.connect("checks", context.run.run_id) as connection:
        if live_index(connection, words.url) is None:
            return no_live_index(words.url)
        return reconciliation_result(reconcile(connection, words.open()))
