"""Find the months for which every step would write nothing, without running a step.

A step has nothing to do if its inputs equal the recorded ones and its output still exists. This
module compares the same inputs as the steps, but for all months of some lists at once: with six
statements, a listing of files, and one query of each index.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from mail_assets.indexes.mail_index import MailIndex
from mail_assets.indexes.vectors import MailVectors
from mail_assets.indexes.words import MailWords
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.month import ListMonth, month_number
from mail_assets.sources.source import ArchiveSource, Fetched
from mail_assets.steps.cut_chunks import chunk_inputs
from mail_assets.steps.encode_chunks import embedding_inputs
from mail_assets.steps.fetch_archive import (
    ASSET,
    FetchOptions,
    ask_source,
    examine_archive,
    is_read,
    keep_file,
)
from mail_assets.steps.fill_index import vector_inputs, word_inputs
from mail_assets.steps.load_messages import message_inputs
from mail_assets.steps.read_patches import patch_inputs
from mail_assets.store.embeddings import file_key
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.indexes import count_by_month, list_indexes
from mail_assets.tables.mbox_archives import ArchiveRow, read_archive, read_archives, write_archive
from mail_assets.tables.partitions import (
    Checked,
    Partition,
    State,
    locked,
    read_checked,
    read_states,
)
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.workspace import ListDefaults, Workspace


class Chain(NamedTuple):
    """Settings and indexes of all steps, as runs use them now.

    `options` and `defaults` are by list. `checks` maps the checks of months, (asset, name), to
    whether the check blocks a run. A month counts as changed if its current state has not passed
    each blocking check, or if another check has not run on it.
    """

    options: Mapping[str, FetchOptions]
    defaults: Mapping[str, ListDefaults]
    sizes: ChunkSizes
    vectors: MailVectors
    words: MailWords
    checks: Mapping[tuple[str, str], bool]


class UnchangedMonth(NamedTuple):
    """Records of a month: its archive, and the state of each asset."""

    archive: ArchiveRow
    states: Mapping[str, State]


def find_unchanged(
    workspace: Workspace, chain: Chain, months: Iterable[ListMonth], assets: Sequence[str]
) -> dict[ListMonth, UnchangedMonth]:
    """Return the months that need no run of some assets, with records; sources are not asked."""
    wanted = [*months]
    records = _read_records(workspace, chain, {month.list_name for month in wanted})
    checks = {check: stops for check, stops in chain.checks.items() if check[0] in assets}
    return {
        month: UnchangedMonth(records.archives[month], records.states[month])
        for month in wanted
        if month in records.states
        and month in records.archives
        and _is_checked(records.checked.get(month, {}), checks)
        and all(_TESTS[asset](records, month, records.states[month]) for asset in assets)
    }


def _is_checked(found: Checked, checks: Mapping[tuple[str, str], bool]) -> bool:
    return all(
        found.get(check, False) or (not stops and check in found) for check, stops in checks.items()
    )


class _Entries(NamedTuple):
    """Entries of an index by month.

    `keys`: (all keys, written keys) in its manifest. `counts`: entries that the index itself
    reports; None if it cannot count. `is_live`: some index at the same URL is live.
    """

    keys: Mapping[ListMonth, tuple[int, int]]
    counts: Counter[tuple[object, ...]] | None
    is_live: bool

    def has(self, month: ListMonth, entries: float) -> bool:
        """Return whether a month has exactly `entries` entries, all of them written."""
        place = (month.list_name, month_number(month.month))
        there = entries if self.counts is None else self.counts[place]
        agree = self.keys.get(month, (0, 0)) == (entries, entries) and there == entries
        return agree and (self.is_live or not entries)


@dataclass(frozen=True)
class _Records:
    chain: Chain
    archives: Mapping[ListMonth, ArchiveRow]
    states: Mapping[ListMonth, Mapping[str, State]]
    checked: Mapping[ListMonth, Checked]
    files: set[str]
    vectors: _Entries
    words: _Entries


def _read_records(workspace: Workspace, chain: Chain, lists: Collection[str]) -> _Records:
    connection = workspace.connection
    return _Records(
        chain,
        read_archives(connection, lists),
        read_states(connection, lists),
        read_checked(connection, lists),
        {*_files(workspace.store, lists)},
        _read_entries(connection, chain.vectors, lists),
        _read_entries(connection, chain.words, lists),
    )


def _files(store: ObjectStore, lists: Iterable[str]) -> Iterable[str]:
    for name in lists:
        yield from store.keys(f"archives/{name}/")
        yield from store.keys(f"embeddings/{name}/")


def _read_entries(
    connection: psycopg.Connection, mail_index: MailIndex[Any], lists: Collection[str]
) -> _Entries:
    keys = count_by_month(connection, mail_index.manifest, lists)
    indexes = list_indexes(connection, mail_index.url)
    is_recorded = any(one.name == mail_index.name for one in indexes)
    is_live = is_recorded and any(one.live for one in indexes)  # if not, the step makes one live
    return _Entries(keys, mail_index.count_months(), is_live)


_States = Mapping[str, State]


def _archive_stays(records: _Records, month: ListMonth, states: _States) -> bool:
    archive = records.archives[month]
    return is_read(states.get("mbox_archives"), records.chain.options[month.list_name]) and (
        archive.object_key is None or archive.object_key in records.files
    )


def _messages_stay(records: _Records, month: ListMonth, states: _States) -> bool:
    inputs = message_inputs(records.archives[month], records.chain.defaults[month.list_name])
    return "messages" in states and states["messages"].inputs == inputs


def _words_stay(records: _Records, month: ListMonth, states: _States) -> bool:
    if not {"messages", "words"} <= states.keys():
        return False
    words = records.chain.words
    inputs = word_inputs(states["messages"], words.manifest)
    total = states["words"].counts[words.total]
    return states["words"].inputs == inputs and records.words.has(month, total)


def _patches_stay(_records: _Records, _month: ListMonth, states: _States) -> bool:
    if not {"messages", "patches"} <= states.keys():
        return False
    return states["patches"].inputs == patch_inputs(states["messages"])


def _chunks_stay(records: _Records, month: ListMonth, states: _States) -> bool:
    if not {"messages", "chunks"} <= states.keys():
        return False
    return states["chunks"].inputs == chunk_inputs(states["messages"], records.chain.sizes)


def _embeddings_stay(records: _Records, month: ListMonth, states: _States) -> bool:
    if not {"chunks", "embeddings"} <= states.keys():
        return False
    encoder = records.chain.vectors.fingerprint
    exists = file_key(month, encoder) in records.files
    return states["embeddings"].inputs == embedding_inputs(states["chunks"], encoder) and (
        exists or not states["embeddings"].counts["texts"]
    )


def _vectors_stay(records: _Records, month: ListMonth, states: _States) -> bool:
    if not {"messages", "embeddings", "vectors"} <= states.keys():
        return False
    vectors = records.chain.vectors
    inputs = vector_inputs(states["messages"], states["embeddings"], vectors.manifest)
    total = states["vectors"].counts[vectors.total]
    return states["vectors"].inputs == inputs and records.vectors.has(month, total)


_TESTS: Mapping[str, Callable[[_Records, ListMonth, _States], bool]] = {
    "mbox_archives": _archive_stays,
    "messages": _messages_stay,
    "words": _words_stay,
    "patches": _patches_stay,
    "chunks": _chunks_stay,
    "embeddings": _embeddings_stay,
    "vectors": _vectors_stay,
}


def confirm_archive(
    workspace: Workspace, month: ListMonth, source: ArchiveSource, options: FetchOptions
) -> bool:
    """Return whether the source's archive of a month equals the kept one, or neither exists.

    The rules are those of fetch_archive: a fetch would change nothing. Other bytes with the same
    messages count as the same archive. Their version is recorded, so that the next call may
    download nothing.

    Raises:
        SourceError: the source cannot be asked.
    """
    with (
        locked(workspace.connection, Partition(ASSET, month)),
        tempfile.TemporaryDirectory() as folder,
    ):
        kept = read_archive(workspace.connection, month)
        if kept is None:
            return False
        fetched = ask_source(source, month, Path(folder) / "archive", kept)
        if fetched is None or not kept.object_key:
            return fetched is None and not kept.object_key
        if isinstance(fetched, Fetched):
            return _holds_the_same(workspace, month, kept, fetched, options)
        return True


def _holds_the_same(
    workspace: Workspace,
    month: ListMonth,
    kept: ArchiveRow,
    fetched: Fetched,
    options: FetchOptions,
) -> bool:
    try:
        new = examine_archive(workspace, fetched, kept, options.dialect).row
    except ArchiveError:  # the month's run reports it
        return False
    if new.content_sha256 != kept.content_sha256:
        return False
    write_archive(workspace.connection, month, keep_file(new, kept))
    return True
