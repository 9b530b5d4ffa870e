"""The checks of chunks, embeddings, words and vectors, by month, and of the quality of search."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    ERROR,
    WARN,
    CheckedMonth,
    CheckedMonths,
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
from mail_assets.evaluation.quality import (
    TopicScores,
    build_change_row,
    compare_topics,
    describe_change,
)
from mail_assets.indexes.mail_index import MailIndex
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_fingerprint
from mail_assets.tables.checks import Tokens, WrongSpans, chunk_keys, count_months
from mail_assets.tables.indexes import PromotionRecord, read_manifest, read_promotion
from mail_assets.tables.partitions import Partition, read_state

#: Usual range of the mean tokens of a month's chunks, as a share of the encoder's target. A mean
#: outside of it probably shows mail of a kind that the chunker or the segmenter does not know.
TOKENS_LOW, TOKENS_HIGH = 0.15, 1.25

#: Fewest chunks for which the mean is meaningful.
ENOUGH_CHUNKS = 50


@month_check("chunks", WrongSpans, ERROR)
def spans_point_into_bodies(spans: WrongSpans) -> bool:
    """The text of each chunk is exactly the text of its spans in the message's body."""
    return not spans.wrong


@dg.asset_check(asset=asset_key("chunks"))
def tokens_in_range(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, encoder: EncoderResource
) -> Results:
    """Chunks have about the encoder's target of tokens, and never more than its maximum."""
    sizes = encoder.sizes

    def find(connection: psycopg.Connection, months: Sequence[ListMonth]) -> CheckedMonths:
        found = {}
        for month, tokens in count_months(connection, months, Tokens).items():
            usual = TOKENS_LOW <= tokens.mean / sizes.target <= TOKENS_HIGH
            passed = tokens.most <= sizes.max_tokens and (usual or tokens.chunks < ENOUGH_CHUNKS)
            figures = {**tokens._asdict(), "mean": round(tokens.mean, 1)}
            found[month] = CheckedMonth(passed, figures)
        return found

    return check_months(context, database, find, WARN)


@dg.asset_check(asset=asset_key("embeddings"), blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> Results:
    """All vectors of the files are by the encoder whose fingerprint is in the index's name."""
    files, fingerprint = store.open(), encoder.fingerprint

    def find(connection: psycopg.Connection, months: Sequence[ListMonth]) -> CheckedMonths:
        results = {}
        for month in months:
            state = read_state(connection, Partition("embeddings", month))
            texts = int(state.counts["texts"]) if state else 0
            key = file_key(month, fingerprint)
            found = read_fingerprint(files, key) if files.exists(key) else "no file"
            wanted = fingerprint if texts else "no file"
            figures = {"texts": texts, "fingerprint": found, "wanted": wanted}
            results[month] = CheckedMonth(state is not None and found == wanted, figures)
        return results

    return check_months(context, database, find, ERROR)


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

    def find(connection: psycopg.Connection, months: Sequence[ListMonth]) -> CheckedMonths:
        def read(month: ListMonth) -> KnownKeys:
            entries = read_manifest(connection, mail_index.part(month))
            return KnownKeys(read_wanted(connection, month), entries)

        return compare_months(months, read, find_keys, (source, place))

    return check_months(context, database, find, ERROR)


LOST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("mode", "string"),
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("then", "float", "nDCG@10"),
        dg.TableColumn("now", "float", "nDCG@10"),
    ]
)

_ASSET = asset_key("search_quality")

#: Most materializations that are read: years of weekly measurements.
MOST_MEASUREMENTS = 200

#: Metadata that each measurement has in addition to its figures.
_REQUIRED = {"bucket", "index", "judged_set", "topics"}


class _Measurement(NamedTuple):
    """A materialization: its time in seconds since 1970, its index, and its scores."""

    at: float
    bucket: str
    name: str
    judged_set: str
    topics: TopicScores


@dg.asset_check(asset=asset_key("search_quality"))
def search_quality_holds(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Search answers the judged queries as well as when the live index was promoted. If nothing
    was recorded then, the first measurement of that index is the baseline.
    """
    measured = _read_measurements(context.instance)
    with database.connect("checks", context.run.run_id) as connection:
        live = read_promotion(connection, vector_bucket.url)
    latest = measured[-1] if measured else None
    if (
        latest is None
        or live is None
        or (latest.bucket, latest.name) != (vector_bucket.url, live.name)
    ):
        was = "never measured"
        if latest:
            now = live.name if live else "no index"
            was = f"last measured of index {latest.name}, live is {now}"
        return dg.AssetCheckResult(
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"{was}: set MAIL_QUALITY_SET and materialize search_quality",
        )
    held = _baseline(context.instance, live, latest)
    if held is None:
        return dg.AssetCheckResult(
            passed=True,
            description="the first measurement of this index: later ones are compared with it",
        )
    topics, recorded = held
    changes = compare_topics(topics, latest.topics)
    worse = [one for one in changes if one.worse]
    return dg.AssetCheckResult(
        passed=not worse,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"against {recorded}: {'; '.join(map(describe_change, worse or changes))}",
        metadata={
            **{f"{one.mode}_difference": one.difference.mean for one in changes},
            "modes": dg.MetadataValue.table(
                [dg.TableRecord(build_change_row(one)) for one in changes]
            ),
            "lost": dg.MetadataValue.table(
                [dg.TableRecord(lost._asdict()) for one in changes for lost in one.lost],
                LOST_SCHEMA,
            ),
        },
    )


def _read_measurements(
    instance: dg.DagsterInstance, since: dt.datetime | None = None
) -> list[_Measurement]:
    """Return the latest measurements, or the first ones since a time, oldest first.

    Materializations that a person has reported have no figures and are left out.
    """
    wanted = dg.AssetRecordsFilter(_ASSET, after_timestamp=since.timestamp() if since else None)
    found = instance.fetch_materializations(
        wanted, limit=MOST_MEASUREMENTS, ascending=since is not None
    )
    records = found.records if since else reversed(found.records)
    return [*filter(None, map(_read_measurement, records))]


def _read_measurement(record: dg.EventLogRecord) -> _Measurement | None:
    event = record.asset_materialization
    values = {name: one.value for name, one in event.metadata.items()} if event else {}
    if not values.keys() >= _REQUIRED:
        return None
    bucket, index, judged_set = (str(values[one]) for one in ("bucket", "index", "judged_set"))
    topics: Any = values["topics"]
    return _Measurement(record.timestamp, bucket, index, judged_set, topics)


def _baseline(
    instance: dg.DagsterInstance, live: PromotionRecord, latest: _Measurement
) -> tuple[TopicScores, str] | None:
    """Return the scores at the promotion of the live index, and a description of that time.

    If none were recorded for this judged set, return the first scores since then; None if these are
    the latest.
    """
    recorded = live.report.get("quality", {})
    if recorded.get("judged_set") == latest.judged_set:
        return recorded["topics"], f"its promotion on {live.since:%Y-%m-%d}"
    for one in _read_measurements(instance, live.since):
        if one[1:4] != latest[1:4]:
            continue
        if one.at == latest.at:
            return None
        day = dt.datetime.fromtimestamp(one.at, dt.UTC)
        return one.topics, f"its first measurement on {day:%Y-%m-%d}"
    return None
