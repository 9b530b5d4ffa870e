"""The live index of vectors, and that of words: promote another one, or retire one.

Search uses the live indexes. The first vector index that is filled becomes live; another one
becomes live when somebody promotes it. After an update of this package with another version of the
word index, the next backfill fills the new index next to the live one. It becomes live when it has
every message.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import psycopg

from mail_assets.errors import UnavailableError
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.names import index_name, manifest_name
from mail_assets.indexes.reconcile import reconcile
from mail_assets.indexes.vectors import MailVectors, index_spec, name_spec
from mail_assets.indexes.words import MailWords
from mail_assets.postgres.statements import Pending
from mail_assets.tables.encoded_texts import drop_encoded
from mail_assets.tables.indexes import (
    IndexRecord,
    Manifest,
    ask_live_index,
    count_written,
    is_complete,
    list_indexes,
    live_index,
    remove_index,
    switch_live,
)
from mail_assets.words.index import NAME


class Verdict(NamedTuple):
    """Quality of an index: figures to record, and the reason if it is worse than the live one."""

    figures: Mapping[str, Any]
    worse: str = ""


#: Runs judged queries on an index, and on the live one if it is another (evaluation/quality.py).
Judge = Callable[[IndexRecord, IndexRecord | None], Verdict]


class LifecycleError(UnavailableError):
    """An index that cannot be promoted or retired. Names it, the reason and the remedy."""

    notice = "the index cannot be searched at the moment"


class Promotion(NamedTuple):
    """A switch to another live index; `report` are the figures on which it was decided."""

    name: str
    encoder: str
    precision: str
    replaced: str | None
    forced: bool
    report: Mapping[str, Any]


def live_encoder(
    connection: psycopg.Connection, bucket: str, encoder: str, precision: str
) -> tuple[str, str]:
    """Return encoder and precision of the live index, or the given ones if there is none yet."""
    return check_live(live_index(connection, bucket), encoder, precision)


def find_live_vectors(
    connection: psycopg.Connection, bucket: str, encoder: str, precision: str
) -> str:
    """Return the name of the live vector index, or the encoder's if none was filled yet."""
    live = live_index(connection, bucket)
    return live.name if live else index_name(encoder, precision)


def check_live(live: IndexRecord | None, encoder: str, precision: str) -> tuple[str, str]:
    """Return encoder and precision of an index, or the given ones if there is none."""
    if live is None:
        return encoder, precision
    _check_encoder(live)
    return live.encoder, live.precision


def describe_indexes(
    connection: psycopg.Connection, mail_bucket: MailBucket
) -> list[dict[str, str | int | bool]]:
    """Return the indexes filled from here, then others in the bucket; `kind`: vectors or words."""
    there = {*mail_bucket.bucket.indexes()}
    made = list_indexes(connection, mail_bucket.url)
    described: list[dict[str, str | int | bool]] = [
        {
            "kind": mail_bucket.table,
            **one._asdict(),
            "written": count_written(connection, mail_bucket.manifest(one.name)),
            "in_bucket": one.name in there,
        }
        for one in made
    ]
    unknown = sorted(there - {one.name for one in made})
    return described + [
        {"kind": mail_bucket.table, "name": name, "live": False, "in_bucket": True}
        for name in unknown
    ]


def complete_indexes(connection: psycopg.Connection, url: str) -> list[IndexRecord]:
    """Return the vector indexes that can be compared, the live one first.

    The others have every chunk according to their manifest, and this version has their encoder.
    """
    made = list_indexes(connection, url)
    live = [one for one in made if one.live]
    for one in live:
        _check_encoder(one)
    others = [
        one
        for one in made
        if not one.live
        and has_encoder(one)
        and is_complete(connection, Manifest("vectors", manifest_name(url, one.name)))
    ]
    return live + others


def promote_vectors(
    connection: psycopg.Connection,
    mail_bucket: MailBucket,
    name: str,
    *,
    force: bool = False,
    judge: Judge | None = None,
) -> Promotion:
    """Make search use the vector index `name`, if it is fit.

    A fit index has exactly the keys of the chunks, made from their present content, and a `judge`
    finds it not worse than the live one. `force` switches in any case, and is recorded. The next
    query uses the new index.

    Raises:
        LifecycleError: the index or its encoder is unknown, it is not fit, or its encoder now makes
            vectors of another dimension, which `force` does not override.
    """
    bucket, url = mail_bucket.bucket, mail_bucket.url
    candidate, live = find_recorded(connection, url, name), live_index(connection, url)
    _check_encoder(candidate)
    index = bucket.index(index_spec(candidate.encoder, candidate.precision))
    made_by = (candidate.encoder, candidate.precision, candidate.fingerprint)
    found = reconcile(connection, MailVectors(index, url, *made_by))
    held = index.describe()["dimension"]
    if held != index.spec.dimension:
        raise LifecycleError(
            f"index {name} cannot be asked: its vectors have {held} numbers, and encoder "
            f"{candidate.encoder} makes {index.spec.dimension} now; have its server serve the "
            "model as before, or call another model by another name in MAIL_ENCODER and fill its "
            "index with `mail-assets index fill`"
        )
    report: dict[str, Any] = {**found.figures, **found.counts}
    reasons = [f"{count} keys are {fault}" for fault, count in found.counts.items() if count]
    if reasons and not force:
        raise LifecycleError(
            f"index {name} is not fit to be live: {', '.join(reasons)}; complete it with "
            f"MAIL_ENCODER={candidate.encoder} MAIL_PRECISION={candidate.precision} "
            "mail-assets backfill, or use --force"
        )
    if judge:
        verdict = judge(
            candidate, live if live and live.name != name and has_encoder(live) else None
        )
        report |= verdict.figures
        if verdict.worse and not force:
            raise LifecycleError(
                f"index {name} is not fit to be live: {verdict.worse}; use --force to promote it "
                "anyway"
            )
        reasons += [verdict.worse] if verdict.worse else []
    replaced = switch_live(connection, url, name, bool(reasons), report)
    drop_encoded(connection, candidate.fingerprint)  # the index has them now
    return Promotion(name, candidate.encoder, candidate.precision, replaced, bool(reasons), report)


def retire_index(connection: psycopg.Connection, mail_bucket: MailBucket, name: str) -> None:
    """Delete an index that is not live, of vectors or of words, and its manifest.

    Raises:
        LifecycleError: it is live, or unknown.
    """
    bucket, url = mail_bucket.bucket, mail_bucket.url
    find_recorded(connection, url, name)
    try:
        with connection.transaction():
            remove_index(connection, url, name, mail_bucket.manifest(name))
            bucket.index(name_spec(name)).drop()
    except psycopg.errors.ForeignKeyViolation:
        raise LifecycleError(
            f"index {name} is live: promote another one first, then retire it"
        ) from None


def find_recorded(
    connection: psycopg.Connection, url: str, name: str, fillable: str = ""
) -> IndexRecord:
    """Return the record of an index.

    Raises:
        LifecycleError: no such index was filled, or it is not the `fillable` one.
    """
    if fillable and name != fillable:
        raise LifecycleError(
            f"this version fills {fillable}, not {name}: run `mail-assets backfill`, which makes "
            "it live"
        )
    recorded = {one.name: one for one in list_indexes(connection, url)}
    if name not in recorded:
        raise LifecycleError(
            f"no index {name} was filled in {url}; there are: {', '.join(recorded) or 'none'}"
        )
    return recorded[name]


def has_encoder(record: IndexRecord) -> bool:
    """Return whether this version has the encoder that filled an index."""
    try:
        return index_name(record.encoder, record.precision) == record.name
    except ValueError:  # this version no longer has the model
        return False


def _check_encoder(record: IndexRecord) -> None:
    if not has_encoder(record):
        raise LifecycleError(
            f"index {record.name} was filled by encoder {record.encoder} {record.precision} "
            f"(fingerprint {record.fingerprint}), which this version of mail_assets does not have; "
            "run the version that filled it, or fill another index with `mail-assets index fill` "
            "and promote that"
        )


def find_live_words(connection: psycopg.Connection, url: str) -> str:
    """Return the name of the live word index, or this version's if none was filled yet."""
    return ask_live_words(connection, url).read()


def ask_live_words(connection: psycopg.Connection, url: str) -> Pending[str]:
    """Send the query for the name that `find_live_words` returns."""
    return ask_live_index(connection, url).then(lambda live: live.name if live else NAME)


def follow_version(connection: psycopg.Connection, words: MailWords) -> bool:
    """Promote the word index of this version if it is complete; return whether that was done."""
    live = live_index(connection, words.url)
    if live is None or live.name == words.name or not is_complete(connection, words.manifest):
        return False
    report = {"documents": count_written(connection, words.manifest)}
    switch_live(connection, words.url, words.name, False, report)
    return True
