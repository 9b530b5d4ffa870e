"""Define the workspace of a step (database, store and log), its arguments and its outcome."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from mail_assets.errors import MonthError
from mail_assets.month import ListMonth
from mail_assets.processes.workers import WorkerPool
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.partitions import Counts, Partition, State, read_state
from mail_assets.tables.removals import NO_KEY, KeySource

#: Reports progress during long work; never called once per message.
Log = Callable[[str], None]


@dataclass(frozen=True)
class Workspace:
    """The mail database, the store of files, and the log.

    `forget_key` is required once mail was forgotten; the default has no key and fails then.
    `workers` are worker processes of this process.
    """

    connection: psycopg.Connection
    store: ObjectStore
    log: Log
    forget_key: KeySource = NO_KEY
    workers: WorkerPool = field(default_factory=WorkerPool)


class ListDefaults(NamedTuple):
    """Language and default charset of a list's mail, and whether it may be shown.

    `language` is a text search configuration of PostgreSQL. `charset` applies to mail that names no
    charset; "" means windows-1252.
    """

    language: str
    charset: str = ""
    published: bool = True

    def __str__(self) -> str:
        """Return language and charset as one word, which is part of a month's inputs."""
        return f"{self.language}/{self.charset}" if self.charset else self.language


class Outcome(NamedTuple):
    """Result of one step for one partition.

    `counts` are numbers under stable names. `digest` identifies the current content of the
    partition. `changed`: rows or files were written. `note` is a remark for the run's log.
    """

    counts: Counts
    digest: str
    changed: bool
    note: str = ""


class StepError(MonthError):
    """A partition cannot be made; the message has list, month, reason and remedy."""


def read_made(connection: psycopg.Connection, asset: str, month: ListMonth) -> State:
    """Return the state of an asset that is an input of a step.

    Raises:
        StepError: the asset was never materialized for this month.
    """
    state = read_state(connection, Partition(asset, month))
    if state is None:
        raise StepError(f"{month}: no {asset} yet; materialize {asset} first")
    return state


def rate(amount: float, seconds: float) -> float:
    """Return an amount per second, rounded to one digit."""
    return round(amount / seconds, 1) if seconds > 0 else 0.0
