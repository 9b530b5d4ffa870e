"""Find faults in the database, the indexes and the files of a home, each with its remedy.

Nothing is changed. defs/doctor.py finds faults in Dagster's records.
"""

import datetime as dt
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import psycopg

from mail_assets.errors import UnavailableError
from mail_assets.indexes.encoder_probe import EncoderProbeError, TextEncoder, check_encoder
from mail_assets.indexes.live import has_encoder
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.words import MailWords
from mail_assets.month import ListMonth
from mail_assets.tables.health import (
    find_behind,
    find_idle_locks,
    find_lacking_extensions,
    find_left_lists,
    find_months_outside,
    find_other_defaults,
    find_other_lists,
    find_without_statistics,
    read_silences,
)
from mail_assets.tables.indexes import live_index
from mail_assets.tables.mbox_archives import archived_months
from mail_assets.tables.removals import uncut_months
from mail_assets.tables.removed_messages import unwanted_documents, unwanted_keys
from mail_assets.workspace import ListDefaults


class Finding(NamedTuple):
    """A fault of a home: the problem, its location, and the command that repairs it."""

    problem: str
    where: str
    remedy: str


BACKFILL = "mail-assets backfill"

#: Seconds that an idle session may hold a lock; encoding a part takes about ten.
IDLE = 3600.0

#: Milliseconds that pg_terminate_backend waits for the end of a session, and so of its locks.
ENDED = 60_000

#: A list is silent after three times its usual gap. The gap is known after ten days with mail.
SILENT_GAPS, DAYS_WITH_MAIL = 3, 10

#: A disk is nearly full if its free space is below both this share and this many bytes.
FREE_SHARE, FREE_BYTES = 0.05, 5 << 30


def not_examined(what: str, error: UnavailableError) -> Finding:
    """Return a finding about a part that does not answer; the other parts are still examined."""
    return Finding(f"not examined: {what}", str(error), "repair that, then repeat the command")


def examine_months(
    connection: psycopg.Connection, has_month: Callable[[ListMonth], bool], index_name: str
) -> Iterator[Finding]:
    """Find archived months whose assets are missing or made from older archives.

    Months for which `has_month` is false are left out, because no run can make them. `index_name`
    is the manifest's name of the index that runs fill, or "" if search uses another one.
    """
    found = find_behind(connection, index_name)
    behind = {month: asset for month, asset in found.items() if has_month(month)}
    for (name, asset), months in groupby(behind, lambda one: (one.list_name, behind[one])):
        group = [*months]
        yield Finding(f"not made yet, or made from other archives: {asset}", *span(name, group))


def examine_lists(
    connection: psycopg.Connection, lists: Collection[str], lists_file: Path
) -> Iterator[Finding]:
    """Find stored lists that are not in `lists`.

    They are no longer filled, counted or shown. A list that was renamed is stored twice.
    """
    for left in find_left_lists(connection, lists):
        name = shlex.quote(left.name)
        yield Finding(
            "stored, but no longer in lists.toml",
            f"list {left.name}: {left.messages} messages in {left.months} months",
            f"mail-assets list remove {name}  # or put [{left.name}] back into {lists_file}",
        )


def examine_published(
    connection: psycopg.Connection, languages: Mapping[str, str]
) -> Iterator[Finding]:
    """Find lists that the SQL functions show, hide or read differently from lists.toml."""
    if lists := find_other_lists(connection, languages):
        yield Finding(
            "the database shows other lists than lists.toml",
            f"table lists: {', '.join(lists)}",
            "mail-assets up",
        )


def examine_silent_lists(
    connection: psycopg.Connection, lists: Collection[str], now: dt.datetime
) -> Iterator[Finding]:
    """Find lists without mail for three times their usual gap; their source may have moved."""
    for one in read_silences(connection, lists, now):
        days = (now.date() - one.last).days
        if one.days >= DAYS_WITH_MAIL and days > SILENT_GAPS * one.gap:
            usual = "day" if one.gap == 1 else f"{one.gap} days"
            yield Finding(
                "no mail for three times its usual gap",
                f"list {one.name}: none since {one.last}, {days} days; usually every {usual}",
                f"{BACKFILL} --list {shlex.quote(one.name)}  # and look at its source; "
                "if it has ended: ended = true in its table of lists.toml",
            )


def examine_months_outside(
    connection: psycopg.Connection, lists: Collection[str], first: str, last: str | None
) -> Iterator[Finding]:
    """Find stored months that lists.toml excludes; they are searched but never fetched again."""
    months = find_months_outside(connection, lists, first, last or "9999-12")
    for name, group in groupby(months, lambda one: one.list_name):
        where, _ = span(name, [*group])
        bounds = f"first_month {first}" + (f" and last_month {last}" if last else "")
        yield Finding(
            f"stored, but outside of {bounds}: searched, but never fetched again",
            where,
            "lower first_month or raise last_month in lists.toml, and reload: nothing is lost",
        )


def examine_extensions(
    connection: psycopg.Connection, psql: str, *, needs_vector: bool
) -> Iterator[Finding]:
    """Find missing extensions: pg_trgm, and pgvector if it keeps the vectors."""
    wanted = {
        "pg_trgm": "a part of a sender, subject or file name is found by reading all messages"
    }
    if needs_vector:
        wanted["vector"] = "MAIL_VECTORS=pgvector: keeps its vectors there"
    for name, is_there in find_lacking_extensions(connection, wanted).items():
        create = f"{psql} -c 'create extension {name}' && mail-assets up --mend"
        install = f"install {name} on the server (package postgresql-contrib, or pgvector), then "
        yield Finding(
            f"the extension {name} is missing",
            wanted[name],
            create if is_there else install + create,
        )


def examine_empty_lists(
    connection: psycopg.Connection, lists: Collection[str]
) -> Iterator[Finding]:
    """Find lists of lists.toml without months: never filled, or with an empty source."""
    for name in sorted(lists):
        if not archived_months(connection, name):
            yield Finding(
                "no month is stored",
                f"list {name}",
                f"{BACKFILL} --list {shlex.quote(name)}",
            )


def examine_defaults(
    connection: psycopg.Connection, defaults: Mapping[str, ListDefaults]
) -> Iterator[Finding]:
    """Find months that were loaded with another language or charset than lists.toml has now.

    Searches use the current language, so they miss words of these months.
    """
    months = find_other_defaults(connection, {name: str(one) for name, one in defaults.items()})
    for name, group in groupby(months, lambda one: one.list_name):
        yield Finding(
            "made with another language or charset than lists.toml has", *span(name, [*group])
        )


def span(list_name: str, months: Sequence[ListMonth]) -> tuple[str, str]:
    """Return a description of months of a list, and the command that makes them."""
    first, last = min(one.month for one in months), max(one.month for one in months)
    where = f"{list_name} {first}" + (f" to {last} ({len(months)} months)" if first < last else "")
    remedy = f"{BACKFILL} --list {shlex.quote(list_name)} --from {first} --to {last}"
    return where, remedy


def examine_vectors(
    connection: psycopg.Connection, bucket: MailBucket, configured: str
) -> Iterator[Finding]:
    """Find a live vector index that is missing, has no encoder, or is not filled by runs.

    `configured` is the index that runs fill.
    """
    live = live_index(connection, bucket.url)
    if live is None:
        return
    if not has_encoder(live):
        yield from examine_live_encoder(connection, bucket.url, configured)
        return
    model = f"MAIL_ENCODER={live.encoder} MAIL_PRECISION={live.precision}"
    is_other = live.name != configured
    if live.name not in bucket.bucket.indexes():
        remedy = f"{model} {BACKFILL}" if is_other else BACKFILL
        yield Finding("the live vector index is missing", f"{live.name} in {bucket.url}", remedy)
    elif is_other and live.precision != "static":
        yield Finding(
            f"runs fill {configured}, but search uses another index",
            f"{live.name} in {bucket.url}",
            f"{BACKFILL} && mail-assets index promote {configured}",
        )


def examine_live_encoder(
    connection: psycopg.Connection, bucket: str, configured: str
) -> Iterator[Finding]:
    """Find a live vector index whose encoder this version lacks; `configured` may replace it."""
    live = live_index(connection, bucket)
    if live and not has_encoder(live):
        yield Finding(
            "search fails: this version does not have the encoder of the live vector index",
            f"{live.name} in {bucket}: encoder {live.encoder} {live.precision}, "
            f"fingerprint {live.fingerprint}",
            f"{BACKFILL} && mail-assets index promote {configured}",
        )


def examine_words(
    connection: psycopg.Connection, bucket: MailBucket, words: MailWords
) -> Iterator[Finding]:
    """Find a live word index that is missing, or of a former version."""
    live = live_index(connection, words.url)
    if live is None:
        return
    if live.name != words.name:
        yield Finding(
            "the live word index is of a former version", f"{live.name} in {words.url}", BACKFILL
        )
    elif live.name not in bucket.bucket.indexes():
        yield Finding("the live word index is missing", f"{live.name} in {words.url}", BACKFILL)


def examine_forgotten(connection: psycopg.Connection) -> Iterator[Finding]:
    """Find indexes and archives that may still have forgotten mail."""
    remedy = "the same `mail-assets forget` command again (docs/forgetting.md)"
    kinds = {"vectors": unwanted_keys(connection), "documents": unwanted_documents(connection)}
    for kind, left in kinds.items():
        for name, keys in left.items():
            yield Finding(f"{len(keys)} {kind} of forgotten mail are left", name, remedy)
    for month in uncut_months(connection, ()):
        yield Finding("forgotten mail is not cut out of its archive yet", str(month), remedy)


def examine_encoder(connection: psycopg.Connection, encoder: TextEncoder) -> Iterator[Finding]:
    """Find an encoder that gives different vectors here than where its index was started."""
    try:
        check_encoder(connection, encoder, lambda line: None)
    except EncoderProbeError as error:
        remedy = "MAIL_PRECISION=fp32 mail-assets index fill"
        yield Finding("the encoder makes other vectors here", str(error), remedy)


def examine_server(connection: psycopg.Connection, psql: str) -> Iterator[Finding]:
    """Find tables without statistics, and locks of idle sessions; remedies start with `psql`."""
    if tables := find_without_statistics(connection):
        names = ", ".join(tables)
        yield Finding("the planner has no statistics", names, f"{psql} -c 'analyze {names}'")
    for lock in find_idle_locks(connection, IDLE):
        yield Finding(
            f"a lock is held since {lock.since.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC",
            f"session {lock.pid} {lock.name}",
            f"{psql} -c 'select pg_terminate_backend({lock.pid}, {ENDED})'",
        )


def examine_disks(folders: Sequence[Path]) -> Iterator[Finding]:
    """Find folders whose disk is nearly full; report each disk once."""
    seen: set[int] = set()
    for folder in folders:
        if not folder.exists() or folder.stat().st_dev in seen:
            continue
        seen.add(folder.stat().st_dev)
        total, _, free = shutil.disk_usage(folder)
        if free < FREE_BYTES and free < FREE_SHARE * total:
            where = f"{folder}: {free / 1e9:.1f} of {total / 1e9:.1f} GB free"
            yield Finding("the disk is nearly full", where, "mail-assets prune")
