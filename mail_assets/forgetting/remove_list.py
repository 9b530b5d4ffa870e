"""Remove a list from the indexes, the store and the tables, month by month.

Each step can be repeated, and a record is deleted after the things that it refers to. So the same
command finishes a removal that was killed, or that could not reach an index.
"""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple

import psycopg

from mail_assets.forgetting.clean import OpenIndex
from mail_assets.indexes.words import MailWords, open_mail_words
from mail_assets.month import ListMonth
from mail_assets.postgres.database import retry_conflicts
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.group_series import group_series
from mail_assets.store.embeddings import month_prefix
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.encoded_texts import sweep_encoded
from mail_assets.tables.indexes import Manifest, drop_keys, list_word_indexes
from mail_assets.tables.mbox_archives import folder_key
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.patch_series import discard_patches
from mail_assets.tables.removed_messages import drop_ids, find_held, refresh_statistics
from mail_assets.vectors.index import MissingIndexError, VectorError, VectorIndex
from mail_assets.words.index import MissingWordsError, WordsError
from mail_assets.workspace import Workspace

#: The tables whose rows of a month are deleted in one transaction, in this order.
TABLES = (
    *("messages", "patches", "commits", "commit_link_months", "commit_link_sources", "chunks"),
    *("archive_entries", "quarantine", "former_archives"),
    *("removed_upstream", "removed_messages", "cut_messages", "month_checks", "mbox_archives"),
)
#: The statements about the whole list, in their order.
LAST = ("count_audit", "count_served", "delete_list")
#: The tables of the manifests of indexes.
MANIFESTS = ("words", "vectors")


def find_months(connection: psycopg.Connection, name: str) -> list[ListMonth]:
    """Return the months of a list that have rows in any table."""
    query = statement("remove_list", "months")
    return [ListMonth(name, month) for month in read_column(connection, query, {"list": name})]


def delete_month(connection: psycopg.Connection, month: ListMonth) -> int:
    """Delete the rows of a month in a transaction; return the number of messages.

    Ids that no other list has are removed from their threads and series, which are built again.
    Manifests stay, because they record the keys that are still in an index.
    """
    with connection.transaction():
        ids = {*read_column(connection, statement("remove_list", "ids"), month.columns)}
        deleted = [
            connection.execute(statement("remove_list", f"delete_{table}"), month.columns).rowcount
            for table in TABLES
        ]
        if gone := sorted(ids - find_held(connection, ids)):
            drop_ids(connection, gone)
            discard_patches(connection, gone)
    return deleted[0]


def delete_states(connection: psycopg.Connection, month: ListMonth) -> None:
    """Delete the recorded states of a month, unless an index still has keys of it."""
    connection.execute(statement("remove_list", "delete_partitions"), month.columns)


def delete_list(connection: psycopg.Connection, name: str) -> None:
    """Delete the last rows that name a list, in a transaction."""
    with connection.transaction():
        for one in LAST:
            connection.execute(statement("remove_list", one), {"list": name})


#: The steps that write a month, in the order of a run.
STEPS = ("mbox_archives", "messages", "patches", "words", "chunks", "embeddings", "vectors")


class RemovedList(NamedTuple):
    """The figures of a removal; `failed` has the reason for each index that was not reached."""

    months: int
    messages: int
    keys: Mapping[str, int]
    files: int
    failed: Mapping[str, str]


class _Indexes:
    """Opens indexes by their names in the manifests, each once."""

    def __init__(self, workspace: Workspace, open_index: OpenIndex) -> None:
        self._open_vectors = open_index
        self._urls = {
            f"{url} {name}": (url, name) for url, name in list_word_indexes(workspace.connection)
        }
        self._words: dict[str, MailWords] = {}
        self._vectors: dict[str, VectorIndex] = {}
        self.failed: dict[str, str] = {}

    def delete(self, table: str, name: str, keys: list[str]) -> bool:
        """Delete keys from an index; return whether it could be reached."""
        if name in self.failed:
            return False
        try:
            with suppress(MissingIndexError, MissingWordsError):  # dropped with all that it held
                if table == "words":
                    self._open_words(name).index.delete(keys)
                else:
                    self._vectors.setdefault(name, self._open_vectors(name)).delete(keys)
        except (VectorError, WordsError, ValueError) as error:
            self.failed[name] = str(error)
        return name not in self.failed

    def _open_words(self, name: str) -> MailWords:
        if name not in self._words:
            if name not in self._urls:
                raise ValueError("its location is not recorded")
            self._words[name] = open_mail_words(*self._urls[name])
        return self._words[name]

    def erase(self) -> None:
        """Rewrite the indexes without the deleted entries."""
        used = [
            *((name, words.index.maintain) for name, words in self._words.items()),
            *((name, vectors.maintain) for name, vectors in self._vectors.items()),
        ]
        for name, maintain in used:
            try:
                with suppress(MissingIndexError, MissingWordsError):
                    maintain(erase=True)
            except (VectorError, WordsError) as error:
                self.failed[name] = f"deleted, but not from old files yet: {error}"


def is_stored(workspace: Workspace, name: str) -> bool:
    """Return whether anything of a list is stored."""
    recorded = read_value(
        workspace.connection, statement("remove_list", "is_recorded"), {"list": name}
    )
    return bool(recorded or find_months(workspace.connection, name)) or any(
        next(workspace.store.keys(prefix), None) for prefix in _prefixes(name)
    )


def remove_list(workspace: Workspace, name: str, open_index: OpenIndex) -> RemovedList:
    """Remove a list from every table, index and file; threads that had its mail are rebuilt."""
    connection = workspace.connection
    connection.execute(statement("remove_list", "close"), {"list": name})
    indexes = _Indexes(workspace, open_index)
    months = find_months(connection, name)
    keys = dict.fromkeys(MANIFESTS, 0)
    messages = files = 0
    for number, month in enumerate(months, 1):
        workspace.log(f"{month} ({number} of {len(months)})")
        with ExitStack() as held:
            for step in STEPS:
                wait = partial(workspace.log, f"{month}: waiting for the run of {step}")
                held.enter_context(locked(connection, Partition(step, month), wait))
            messages += retry_conflicts(partial(delete_month, connection, month))
            for table in MANIFESTS:
                keys[table] += _delete_keys(workspace, indexes, table, month)
            for prefix in (folder_key(month), month_prefix(month)):
                files += _delete_files(workspace.store, prefix)
            delete_states(connection, month)
    indexes.erase()
    for prefix in _prefixes(name):
        files += _delete_files(workspace.store, prefix)
    build_threads(connection, workspace.log)
    group_series(connection, workspace.log)
    sweep_encoded(connection)
    refresh_statistics(connection)
    if not indexes.failed:
        delete_list(connection, name)
    return RemovedList(len(months), messages, keys, files, indexes.failed)


def _delete_keys(workspace: Workspace, indexes: _Indexes, table: str, month: ListMonth) -> int:
    deleted = 0
    query = statement("remove_list", table)
    for name, keys in workspace.connection.execute(query, month.columns).fetchall():
        if indexes.delete(table, name, keys):
            drop_keys(workspace.connection, Manifest(table, name), keys)
            deleted += len(keys)
    return deleted


def _prefixes(name: str) -> tuple[str, str]:
    return f"archives/{name}/", f"embeddings/{name}/"


def _delete_files(store: ObjectStore, prefix: str) -> int:
    keys = [*store.keys(prefix)]
    for key in keys:
        with suppress(FileNotFoundError):
            store.delete(key)
    return len(keys)
