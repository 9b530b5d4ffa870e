"""The checks of chunks, embeddings, words and vectors, by month."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    ERROR,
    WARN,
    CheckedMonth,
    KnownKeys,
    Results,
    check_months,
    compare_months,
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
from mail_assets.indexes.mail_index import MailIndex
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_fingerprint
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.checks import Tokens, WrongSpans, chunk_keys, count_months
from mail_assets.tables.indexes import read_manifest
from mail_assets.tables.partitions import Partition, State, read_state
from mail_assets.text.chunk_sizes import ChunkSizes

#: Usual mean tokens of a month's chunks, as a share of the encoder's target. Outside of it the
#: chunker or the segmenter has probably met something new.
TOKENS_LOW, TOKENS_HIGH = 0.15, 1.25

#: Chunks that a mean needs to say anything.
ENOUGH_CHUNKS = 50


@month_check("chunks", WrongSpans, ERROR)
def spans_point_into_bodies(spans: WrongSpans) -> CheckedMonth:
    """The text of each chunk is exactly the spans of its message's body."""
    return CheckedMonth(not spans.wrong, spans._asdict())


@dg.asset_check(asset=asset_key("chunks"))
def tokens_in_range(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, encoder: EncoderResource
) -> Results:
    """Chunks have about as many tokens as the encoder wants, and never more than it takes."""
    sizes = encoder.model.sizes

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        found = count_months(connection, months, Tokens)
        return {month: _judge_sizes(sizes, tokens) for month, tokens in found.items()}

    return check_months(context, database, find, WARN)


def _judge_sizes(sizes: ChunkSizes, tokens: Tokens) -> CheckedMonth:
    usual = TOKENS_LOW <= tokens.mean / sizes.target <= TOKENS_HIGH
    passed = tokens.most <= sizes.max_tokens and (usual or tokens.chunks < ENOUGH_CHUNKS)
    return CheckedMonth(passed, {**tokens._asdict(), "mean": round(tokens.mean, 1)})


@dg.asset_check(asset=asset_key("embeddings"), blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> Results:
    """One encoder made all vectors of the files: the one whose fingerprint the index's name has."""
    files, fingerprint = store.open(), encoder.fingerprint

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        states = {month: read_state(connection, Partition("embeddings", month)) for month in months}
        return {
            month: _find_fingerprint(files, month, state, fingerprint)
            for month, state in states.items()
        }

    return check_months(context, database, find, ERROR)


def _find_fingerprint(
    files: ObjectStore, month: ListMonth, state: State | None, fingerprint: str
) -> CheckedMonth:
    texts = int(state.counts["texts"]) if state else 0
    key = file_key(month, fingerprint)
    found = read_fingerprint(files, key) if files.exists(key) else "no file"
    wanted = fingerprint if texts else "no file"
    figures = {"texts": texts, "fingerprint": found, "wanted": wanted}
    return CheckedMonth(state is not None and found == wanted, figures)


@dg.asset_check(asset=asset_key("words"), name="keys_agree", blocking=True)
def word_keys_agree(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, words: WordsResource
) -> Results:
    """Keys in the index = keys in the manifest = messages."""
    index = words.open()
    return _compare_keys(
        context, database, index, lambda *month: index.read_digests(*month).keys(), "messages"
    )


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def keys_agree(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> Results:
    """Keys in the bucket = keys in the manifest = chunks."""
    return _compare_keys(
        context, database, vector_bucket.open_index(encoder), chunk_keys, "chunks", "bucket"
    )


def _compare_keys(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    mail_index: MailIndex[Any],
    read_wanted: Callable[[psycopg.Connection, ListMonth], Set[str]],
    source: str,
    place: str = "index",
) -> Results:
    def find_keys(known: Mapping[ListMonth, KnownKeys]) -> Mapping[ListMonth, Counter[str]]:
        wanted = {month: one.wanted | one.entries.keys() for month, one in known.items()}
        return mail_index.find_keys(wanted)

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        def read(month: ListMonth) -> KnownKeys:
            entries = read_manifest(connection, mail_index.part(month))
            return KnownKeys(read_wanted(connection, month), entries)

        return compare_months(months, read, find_keys, (source, place))

    return check_months(context, database, find, ERROR)
