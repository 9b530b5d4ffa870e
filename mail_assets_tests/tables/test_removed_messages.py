"""Hiding ids waits for the step that builds threads, which would undo it."""

import psycopg
import pytest

from mail_assets.tables.partitions import locked
from mail_assets.tables.removed_messages import hide_ids
from mail_assets.tables.threads import CORPUS


def test_ids_are_not_hidden_while_threads_are_built(
    migrated: psycopg.Connection, mail_dsn: str
) -> None:
    with psycopg.connect(mail_dsn, autocommit=True) as step, locked(step, CORPUS):
        migrated.execute("set lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable), migrated.transaction():
            hide_ids(migrated, {"1@example.org": "forgotten-1"})
    with migrated.transaction():
        hide_ids(migrated, {"1@example.org": "forgotten-1"})
