"""The workspace of a step: database, store and log as one value."""

from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from mail_assets.processes.workers import WorkerPool
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.removals import NO_KEY, KeySource

#: Reports progress during long work; never called once per message.
Log = Callable[[str], None]


@dataclass(frozen=True)
class Workspace:
    """The mail database, the store of files, and where progress is reported.

    `forget_key` is needed once mail was forgotten; the default has no key, and fails then.
    `workers` are the processes that compute for this one.
    """

    connection: psycopg.Connection
    store: ObjectStore
    log: Log
    forget_key: KeySource = NO_KEY
    workers: WorkerPool = field(default_factory=WorkerPool)
