"""Deletes old data that is not needed: embeddings, former archives, Dagster's history.

Afterwards the UI shows the same partitions as materialized, failed or missing, and backfills find
the same failed months. A run that is not needed is deleted with Dagster's API. From other old runs,
log lines and events of steps are deleted, for which Dagster has no API. The statement `old_runs` of
sql/event_log.sql decides which events are needed.

Answers of test queries are the only mail in the history. Forgetting mail deletes them at once.

Each file is deleted under the lock of the run that writes it. Embeddings can be made again from
chunks, so a file deleted by mistake would cost time, not mail.
"""

import datetime as dt
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import dagster as dg
import psycopg
from dagster_postgres import PostgresEventLogStorage
from pydantic import Field

from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.query_job import test_queries
from mail_assets.defs.resources import (
    EncoderResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.defs.runs import MEMORY
from mail_assets.encoding.models import compute_fingerprint
from mail_assets.errors import MailAssetsError
from mail_assets.forgetting.clean import (
    EmbeddingsFile,
    find_files,
    keep_texts,
    older_than_chunks,
)
from mail_assets.operations import KEEP_DAYS, LEAST_DAYS
from mail_assets.postgres.database import begin_session
from mail_assets.postgres.statements import read_column, statement
from mail_assets.settings.settings import Settings
from mail_assets.steps.fetch_archive import sweep_former_archives
from mail_assets.store.embeddings import read_hashes
from mail_assets.tables.encoded_texts import read_used_fingerprints, sweep_encoded
from mail_assets.tables.mbox_archives import expired_archives
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import read_text_hashes
from mail_assets.tables.search_audit import drop_searches
from mail_assets.vectors.index import VectorError
from mail_assets.workspace import Log, Workspace


class Pruned(NamedTuple):
    """Number of deleted things of a kind, and their bytes, None if unknown."""

    what: str
    things: int
    bytes: int | None


def prune_archives(workspace: Workspace, *, dry_run: bool = False) -> Pruned:
    """Delete former archives that were kept for MAIL_KEEP_ARCHIVES days."""
    store, expired = workspace.store, expired_archives(workspace.connection)
    size = sum(store.size(key) for key in expired if store.exists(key))
    if expired and not dry_run:
        sweep_former_archives(workspace)
    return Pruned("former archives", len(expired), size)


def prune_embeddings(
    workspace: Workspace, configured: str, before: dt.datetime, *, dry_run: bool = False
) -> list[Pruned]:
    """Delete embeddings that are not used and were last written before a time.

    These are embeddings of encoders without an index, except the `configured` encoder, parts that
    no run has finished, and vectors of texts that no chunk has any more.
    """
    used = {*read_used_fingerprints(workspace.connection), configured}
    files = [one for one in find_files(workspace) if one.modified < before]
    unused = [one for one in files if one.fingerprint not in used]
    parts = [one for one in files if one.fingerprint in used and one.is_part]
    whole = [one for one in files if one.fingerprint in used and not one.is_part]
    return [
        _delete("embeddings of unused encoders", workspace, unused, dry_run),
        _delete("unfinished parts of embeddings", workspace, parts, dry_run),
        _prune_texts(workspace, whole, dry_run),
    ]


def _delete(
    what: str, workspace: Workspace, files: Collection[EmbeddingsFile], dry_run: bool
) -> Pruned:
    sizes = []
    for one in files:
        with suppress(FileNotFoundError):  # a run that ended meanwhile has deleted its parts
            sizes.append(workspace.store.size(one.key))
        if not dry_run:
            with locked(workspace.connection, Partition("embeddings", one.month)):
                workspace.store.delete(one.key)
    return Pruned(what, len(sizes), sum(sizes))


def _prune_texts(workspace: Workspace, files: Collection[EmbeddingsFile], dry_run: bool) -> Pruned:
    """Delete vectors of texts that no chunk of the month has.

    Only files of other encoders that are older than their month's chunks have such vectors: runs of
    the configured encoder rewrite its files.
    """
    store = workspace.store
    count = size = 0
    for one in older_than_chunks(workspace, files):
        with locked(workspace.connection, Partition("embeddings", one.month)):
            hashes = read_hashes(store, one.key)
            wanted = read_text_hashes(workspace.connection, one.month)
            stale = {*hashes} - wanted
            if not stale:
                continue
            count += len(stale)
            size += store.size(one.key) * len(stale) // len(hashes)
            if not dry_run:
                keep_texts(workspace, one.key, wanted)
    return Pruned("embeddings of texts that are gone", count, size)


#: Runs read at a time; the run of a year has about 2,000 events.
BATCH = 20

#: Rows of check evaluations read at a time.
CHECK_BATCH = 1_000

#: Assets whose older materializations are kept, because their history is read.
HISTORIES = ("search_quality",)

#: Types of events that can be deleted: details of a run, without its start, end and failures.
SPENT = (
    "ASSET_MATERIALIZATION",
    "ASSET_MATERIALIZATION_PLANNED",
    "ASSET_OBSERVATION",
    "ASSET_CHECK_EVALUATION",
    "ASSET_CHECK_EVALUATION_PLANNED",
    "ENGINE_EVENT",
    "HANDLED_OUTPUT",
    "LOADED_INPUT",
    "LOGS_CAPTURED",
    "RESOURCE_INIT_FAILURE",
    "RESOURCE_INIT_STARTED",
    "RESOURCE_INIT_SUCCESS",
    "STEP_INPUT",
    "STEP_OUTPUT",
    "STEP_WORKER_STARTED",
    "STEP_WORKER_STARTING",
)


class HistoryError(MailAssetsError):
    """Dagster's history cannot be pruned; the message has the reason and the remedy."""


class PruneConfig(dg.Config):
    """Run configuration of prune_old."""

    keep_days: int = Field(
        default=KEEP_DAYS, ge=LEAST_DAYS, description="days for which everything is kept"
    )


# highest priority in the upkeep, so that the maintenance of indexes has less to compact
@dg.op(tags={"dagster/priority": "9"})
def prune_old(
    context: dg.OpExecutionContext,
    config: PruneConfig,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
    words: WordsResource,
) -> None:
    """Delete what is older than `keep_days` and not needed. Also delete former archives after
    MAIL_KEEP_ARCHIVES days, and old versions of indexes that no search reads.
    """
    urls = (vector_bucket.url, words.url)
    plan = PrunePlan(config.keep_days)
    with workspace.open(context) as opened:
        found = prune(opened, context.instance, urls, encoder.fingerprint, plan)
    records = [dg.TableRecord({**one._asdict(), "bytes": one.bytes or 0}) for one in found]
    context.add_output_metadata({"pruned": dg.MetadataValue.table(records)})


@dataclass(frozen=True)
class PrunePlan:
    """Number of days for which everything is kept; with `dry_run` nothing is deleted."""

    keep_days: int = KEEP_DAYS
    dry_run: bool = False

    @property
    def before(self) -> dt.datetime:
        """The time before which things are old."""
        return dt.datetime.now(dt.UTC) - dt.timedelta(days=self.keep_days)


def prune_home(settings: Settings, plan: PrunePlan, log: Log) -> list[Pruned]:
    """Delete what is old and not needed in a home; see `prune`."""
    with settings.open_workspace("prune", log) as workspace, open_instance(settings) as instance:
        urls = (settings.vectors, settings.words)
        fingerprint = compute_fingerprint(settings.encoder, settings.precision)
        return prune(workspace, instance, urls, fingerprint, plan)


def prune(
    workspace: Workspace,
    instance: dg.DagsterInstance,
    urls: tuple[str, ...],
    fingerprint: str,
    plan: PrunePlan,
) -> list[Pruned]:
    """Delete what is old and not needed; return what was, or would be, deleted.

    Args:
        urls: URLs of the buckets of indexes.
        fingerprint: fingerprint of the configured encoder.

    Raises:
        HistoryError, StoreError, VectorError, WordsError: the next pruning deletes the rest.
    """
    # LanceDB takes 0.7 s to import, which each process that loads the definitions would pay
    from mail_assets.lance.upkeep import prune_versions
    from mail_assets.words.lance import clean_table

    dry_run = plan.dry_run
    found = prune_history(instance, plan.before, dry_run=dry_run)
    found.append(prune_archives(workspace, dry_run=dry_run))
    found += prune_embeddings(workspace, fingerprint, plan.before, dry_run=dry_run)
    counts = drop_searches(workspace.connection, plan.before, dry_run=dry_run)
    found.append(Pruned("counted searches", counts, None))
    if not dry_run:
        sweep_encoded(workspace.connection)
    lance = [url for url in urls if url.startswith("lance:")]
    versions = [prune_versions(url, clean_table, VectorError, dry_run=dry_run) for url in lance]
    sizes = [one.bytes for one in versions]
    freed = None if None in sizes else sum(size or 0 for size in sizes)
    return [*found, Pruned("old versions of indexes", sum(one.versions for one in versions), freed)]


def prune_history(
    instance: dg.DagsterInstance, before: dt.datetime, *, dry_run: bool = False
) -> list[Pruned]:
    """Delete the history older than `before` that is not needed; return what is deleted.

    Raises:
        HistoryError: `before` is too recent, or the instance is not in PostgreSQL.
    """
    if dt.datetime.now(dt.UTC) - before < MEMORY:
        raise HistoryError(
            f"runs of the last {MEMORY.days} days show which months failed: keep at least these"
        )
    with _connect(instance) as connection:
        checks = _prune_checks(connection, before, dry_run)
        runs = events = runs_size = events_size = 0
        for run_id, needed, size, spent, spent_size in _old_runs(connection, before):
            if not needed:
                runs, runs_size = runs + 1, runs_size + size
                if not dry_run:
                    _delete_run(instance, run_id)
            elif spent:
                events, events_size = events + len(spent), events_size + spent_size
                if not dry_run:
                    connection.execute(statement("event_log", "delete_events"), {"ids": spent})
    return [
        Pruned("runs", runs, runs_size),
        Pruned("events of other runs", events, events_size),
        checks,
    ]


def count_prunable_runs(instance: dg.DagsterInstance, before: dt.datetime, enough: int) -> int:
    """Return the number of runs that are older than `before` and not needed, up to `enough`."""
    count = 0
    with _connect(instance) as connection:
        for _, needed, *_ in _old_runs(connection, before):
            count += not needed
            if count >= enough:
                break
    return count


def delete_answers(settings: Settings) -> tuple[int, int]:
    """Delete ended runs of test queries, which contain mail; return numbers deleted and kept."""
    if not os.path.lexists(settings.dagster_home / "dagster.yaml"):
        return 0, 0  # Dagster never ran here
    with open_instance(settings) as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name=test_queries.name))
        ended = [run for run in runs if run.is_finished]
        for run in ended:
            _delete_run(instance, run.run_id)
    return len(ended), len(runs) - len(ended)


def delete_list_history(settings: Settings, name: str) -> tuple[int, int]:
    """Delete the runs and events of a list's months; return numbers of deleted and kept runs.

    Runs that have not ended are kept. Nothing is done if the storage is not PostgreSQL.
    """
    if not os.path.lexists(settings.dagster_home / "dagster.yaml"):
        return 0, 0
    with (
        open_instance(settings) as instance,
        suppress(HistoryError),
        _connect(instance) as connection,
    ):
        given = {"list": name}
        runs = dict(connection.execute(statement("event_log", "runs_of_list"), given).fetchall())
        ended = [run_id for run_id, has_ended in runs.items() if has_ended]
        for run_id in ended:
            _delete_run(instance, run_id)
        if len(ended) == len(runs):
            events = read_column(connection, statement("event_log", "events_of_list"), given)
            connection.execute(statement("event_log", "delete_events"), {"ids": events})
            connection.execute(statement("event_log", "delete_checks_of_list"), given)
        return len(ended), len(runs) - len(ended)
    return 0, 0


def _delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    # the run itself is deleted last, so that an interrupted deletion is repeated
    with suppress(NotImplementedError):  # logs in a bucket may be deleted by the bucket's rules
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    instance.event_log_storage.delete_events(run_id)
    instance.delete_run(run_id)


def _old_runs(
    connection: psycopg.Connection, before: dt.datetime
) -> Iterator[tuple[str, int, int, list[int], int]]:
    """Yield run id, number of needed events, bytes, ids of spent events and their bytes."""
    rows = connection.execute(statement("event_log", "last_checks")).fetchall()
    parameters = {
        "before": before.timestamp(),
        "batch": BATCH,
        "spent": [*SPENT],
        "histories": [asset_key(name).to_string() for name in HISTORIES],
        "evaluations": [event for _, event in rows],
    }
    after = 0
    while True:
        query = statement("event_log", "old_runs")
        batch = connection.execute(query, {**parameters, "after": after}).fetchall()
        for number, run_id, needed, size, spent, spent_size in batch:
            yield run_id, needed, int(size), spent, int(spent_size)
            after = number
        if len(batch) < BATCH:
            return


def _prune_checks(connection: psycopg.Connection, before: dt.datetime, dry_run: bool) -> Pruned:
    rows = connection.execute(statement("event_log", "last_checks")).fetchall()
    parameters = {"before": before.timestamp(), "last": [row_id for row_id, _ in rows]}
    count = size = 0
    limit = None if dry_run else CHECK_BATCH
    while True:
        query = statement("event_log", "old_checks")
        old = connection.execute(query, {**parameters, "batch": limit}).fetchall()
        count, size = count + len(old), size + sum(one or 0 for _, one in old)
        if dry_run or not old:
            return Pruned("evaluations of checks", count, size)
        ids = [row_id for row_id, _ in old]
        connection.execute(statement("event_log", "delete_checks"), {"ids": ids})


@contextmanager
def _connect(instance: dg.DagsterInstance) -> Iterator[psycopg.Connection]:
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        raise HistoryError(
            f"Dagster keeps its history in {type(storage).__name__}, but only PostgreSQL can be "
            "pruned: use the dagster.yaml of `mail-assets up`"
        )
    url = storage.postgres_url.replace("postgresql+psycopg2://", "postgresql://", 1)
    connection = psycopg.connect(url, autocommit=True, application_name="mail_assets/prune")
    with begin_session(connection):
        yield connection
