"""The workspace of a step: database, store and log as one value."""

from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from mail_assets.processes.workers import WorkerPool
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.removals import NO_KEY, KeySource

#: Where a step reports progress during long work: never once per message.
Log = Callable[[str], None]


@dataclass(frozen=True)
class Workspace:
    """The mail database, the files that the pipeline keeps, and where progress is reported.

    `forget_key` is asked once something was forgotten; the default has none, and is refused then.
    `workers` are the processes that compute beside this one.
    """

    connection: psycopg.Connection
    store: ObjectStore
    log: Log
    forget_key: KeySource = NO_KEY
    workers: WorkerPool = field(default_factory=WorkerPool)
