"""Dagster's history: what of it can go, and deleting that.

A run is deleted whole where nothing of it is needed, by Dagster's own API; of another old run its
log lines and steps' bookkeeping go, for which Dagster has none. What is needed the statement
`old_runs` says: the UI shows the same partitions as before, materialized, failed or missing, and
backfills know the same failed months.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import dagster as dg
import psycopg
from dagster_postgres import PostgresEventLogStorage

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.month_runs import MEMORY
from mail_assets.postgres.session import begin_session
from mail_assets.postgres.statements import statement
from mail_assets.steps.pruned import Pruned

#: Runs to a batch: a run of a year writes some 2,000 events.
BATCH = 20

#: Rows of checks to a batch.
CHECK_BATCH = 1_000

#: Assets of which older materializations are read too: quality over time.
HISTORIES = ("search_quality",)

#: Events of how a run went about its work, as log lines are. Its start, end and failures stay.
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


class HistoryError(RuntimeError):
    """Dagster's history cannot be pruned: names the reason and the remedy."""


@dataclass
class _Counter:
    count: int = 0
    bytes: int = 0

    def add(self, count: int, size: int) -> None:
        self.count += count
        self.bytes += size


def prune_history(
    instance: dg.DagsterInstance, before: dt.datetime, *, dry_run: bool = False
) -> list[Pruned]:
    """Delete what is older than `before` and not needed; return what went, or would go.

    Raises:
        HistoryError: `before` is too near, or the instance is not in PostgreSQL.
    """
    if dt.datetime.now(dt.UTC) - before < MEMORY:
        raise HistoryError(
            f"runs of the last {MEMORY.days} days say which months have failed: keep at least those"
        )
    with _connect(instance) as connection:
        checks = _prune_checks(connection, before, dry_run)
        runs, events = _Counter(), _Counter()
        for run_id, needed, size, spent, spent_size in _old_runs(connection, before):
            if not needed:
                runs.add(1, size)
                if not dry_run:
                    delete_run(instance, run_id)
            elif spent:
                events.add(len(spent), spent_size)
                if not dry_run:
                    connection.execute(statement("event_log", "delete_events"), {"ids": spent})
    return [
        Pruned("runs", runs.count, runs.bytes),
        Pruned("events of other runs", events.count, events.bytes),
        Pruned("evaluations of checks", checks.count, checks.bytes),
    ]


def count_prunable_runs(instance: dg.DagsterInstance, before: dt.datetime, enough: int) -> int:
    """Count the runs that are older than `before` and not needed, up to `enough`."""
    count = 0
    with _connect(instance) as connection:
        for _, needed, *_ in _old_runs(connection, before):
            count += not needed
            if count >= enough:
                break
    return count


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run with its events and logs, the run itself last: killed, it is deleted again."""
    with suppress(NotImplementedError):  # a manager of logs in a bucket may leave that to its rules
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    instance.event_log_storage.delete_events(run_id)
    instance.delete_run(run_id)


def _old_runs(
    connection: psycopg.Connection, before: dt.datetime
) -> Iterator[tuple[str, int, int, list[int], int]]:
    """Yield run, number of needed events, bytes, ids of spent events and their bytes."""
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


def _prune_checks(connection: psycopg.Connection, before: dt.datetime, dry_run: bool) -> _Counter:
    rows = connection.execute(statement("event_log", "last_checks")).fetchall()
    parameters = {"before": before.timestamp(), "last": [row_id for row_id, _ in rows]}
    counter = _Counter()
    limit = None if dry_run else CHECK_BATCH
    while True:
        query = statement("event_log", "old_checks")
        old = connection.execute(query, {**parameters, "batch": limit}).fetchall()
        counter.add(len(old), sum(size or 0 for _, size in old))
        if dry_run or not old:
            return counter
        ids = [row_id for row_id, _ in old]
        connection.execute(statement("event_log", "delete_checks"), {"ids": ids})


@contextmanager
def _connect(instance: dg.DagsterInstance) -> Iterator[psycopg.Connection]:
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        raise HistoryError(
            f"Dagster keeps its history in {type(storage).__name__}, and only PostgreSQL's can be "
            "pruned: use the dagster.yaml of `mail-assets up`"
        )
    url = storage.postgres_url.replace("postgresql+psycopg2://", "postgresql://", 1)
    connection = psycopg.connect(url, autocommit=True, application_name="mail_assets/prune")
    with begin_session(connection):
        yield connection
