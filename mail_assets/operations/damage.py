"""Find damaged rows, files and indexes of a home.

Everything is read: rows are compared with the records of their months, files with their digests,
and each entry of an index with one made now. Nothing is changed. Each finding has the command that
repairs it.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import psycopg

from mail_assets.errors import MailAssetsError, UnavailableError
from mail_assets.indexes.live import has_encoder
from mail_assets.indexes.mail_index import FAILED, MISSING, MailBucket, MailIndex
from mail_assets.indexes.month import compare_month, find_altered
from mail_assets.indexes.reconcile import intended_months, reconcile
from mail_assets.indexes.vectors import MailVectors, open_mail_vectors
from mail_assets.indexes.words import MailWords
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.mail.archive.mbox import split_archive
from mail_assets.month import ListMonth
from mail_assets.operations.examine import BACKFILL, Finding, not_examined, span
from mail_assets.postgres.statements import find_altered_objects
from mail_assets.steps.fetch_archive import is_intact
from mail_assets.steps.fill_index import make_documents, make_vectors
from mail_assets.steps.group_series import has_wrong_keys
from mail_assets.steps.read_month import digest_message
from mail_assets.store.embeddings import file_key, find_fault, read_hashes
from mail_assets.tables import commits, patch_series
from mail_assets.tables.damage import (
    DamagedRows,
    find_damaged_links,
    find_damaged_rows,
    find_damaged_series,
    find_damaged_threads,
    find_missing_tables,
    find_unowned_rows,
    find_wrong_contested,
)
from mail_assets.tables.indexes import live_index
from mail_assets.tables.kept_rows import FORGOTTEN
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    local_archive,
    read_archives,
    read_entries,
)
from mail_assets.tables.partitions import MADE_FROM_ROWS, State, read_state, read_states
from mail_assets.tables.removed_messages import read_text_hashes
from mail_assets.vectors.index import Vector
from mail_assets.words.index import Document
from mail_assets.workspace import Workspace

MEND = "mail-assets up --mend"
UNREADABLE = "an index cannot be read"
_DAMAGED = "damaged or missing"
_ARCHIVES = f"{_DAMAGED}: archives"
_STOPS_RUNS = (_ARCHIVES, f"{_DAMAGED}: embeddings", UNREADABLE)

MESSAGES = ("messages", "contested_texts", "archive_entries", "quarantine", "senders")

#: Table -> the assets that fill it again. Other tables start empty, or are restored from a backup.
FILLED_BY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(MESSAGES, ("messages",)),
    **dict.fromkeys(("threads", "thread_aliases", "thread_changes"), ("threads",)),
    **dict.fromkeys(("thread_summaries", "summary_changes"), ("thread_summaries",)),
    **dict.fromkeys(
        ("patch_series", "patch_states", "patch_outcomes", "patch_keys", "patch_changes"),
        ("patch_series",),
    ),
    **dict.fromkeys(("indexes", "live_indexes"), ("words", "vectors")),
    **dict.fromkeys(
        ("commit_links", "commit_link_months", "commit_link_sources", "commit_link_changes"),
        ("commit_links",),
    ),
    "commits": ("commits", "commit_links"),
    **{name: (name,) for name in ("mbox_archives", "patches", "chunks", "vectors", "words")},
    "partitions": (),
}


#: Monthly assets, each after its inputs.
ORDER = (
    *("mbox_archives", "messages", "words", "patches", "commits", "chunks", "embeddings"),
    "vectors",
)


def _find_damaged_keys(connection: psycopg.Connection) -> Iterator[DamagedRows]:
    if not patch_series.has_changes(connection) and has_wrong_keys(connection):
        yield DamagedRows("patch_series", "rows of patch_keys", None)


#: Assets whose rows are not compared while noted changes wait for the next run.
_WAITING = {
    patch_series.CORPUS: patch_series.has_changes,
    commits.CORPUS: commits.has_changes,
}

#: Checks of assets that have no months.
_OF_CORPUS = (find_damaged_threads, find_damaged_series, _find_damaged_keys, find_damaged_links)


class OpenIndex(NamedTuple):
    """An index to examine, a function that makes its entries, and the settings of its encoder."""

    mail_index: MailIndex[Any]
    make: Callable[[Workspace, ListMonth, Sequence[str]], Iterable[Any]]
    variables: str = ""


def open_indexes(
    connection: psycopg.Connection,
    words: MailWords,
    bucket: MailBucket,
    encoder: str,
    precision: str,
) -> tuple[list[OpenIndex], list[Finding]]:
    """Return the indexes to examine, and findings about indexes that cannot be examined.

    They are the word index, the vector index of the configured encoder, which runs fill, and the
    live vector index. If this version lacks the live index's encoder, examine_live_encoder reports
    it.
    """
    opened, found = [OpenIndex(words, _make_documents)], []
    configured, live = (encoder, precision), live_index(connection, bucket.url)
    encoders = [configured]
    if live and has_encoder(live) and (live.encoder, live.precision) != configured:
        encoders.append((live.encoder, live.precision))
    for one in encoders:
        try:  # this may ask an encoder's server for the dimension
            vectors = open_mail_vectors(bucket.bucket, bucket.url, *one)
        except UnavailableError as error:
            found.append(not_examined(f"the vector index of encoder {one[0]}", error))
            continue
        variables = f"MAIL_ENCODER={shlex.quote(one[0])} MAIL_PRECISION={one[1]} "
        make = partial(_make_vectors, vectors)
        opened.append(OpenIndex(vectors, make, "" if one == configured else variables))
    return opened, found


def _make_documents(
    workspace: Workspace, month: ListMonth, keys: Sequence[str]
) -> Iterable[Document]:
    return make_documents(workspace.connection, month, keys)


def _make_vectors(
    vectors: MailVectors, workspace: Workspace, month: ListMonth, keys: Sequence[str]
) -> Iterable[Vector]:
    return make_vectors(workspace, month, vectors, keys)


def find_stopping(damage: Sequence[Finding]) -> list[Finding]:
    """Return the findings that make monthly runs fail, in the order in which to repair them.

    A new index is filled from embeddings, and these are made from archives.
    """
    found = {kind: [one for one in damage if one.problem == kind] for kind in _STOPS_RUNS}
    if not found[UNREADABLE]:
        return found[_ARCHIVES]
    return [one for kind in _STOPS_RUNS for one in found[kind]]


def examine_tables(connection: psycopg.Connection) -> Iterator[Finding]:
    """Find missing tables, which all other examinations need."""
    for table in find_missing_tables(connection):
        yield Finding("a table is missing", table, _find_remedy(table))


def _find_remedy(table: str) -> str:
    if table in FORGOTTEN:
        return f"{MEND} && mail-assets restore --only-forgotten FOLDER"
    if table not in FILLED_BY:
        return MEND
    only = "".join(f" --only {asset}" for asset in FILLED_BY[table])
    return f"{MEND} && {BACKFILL} --rebuild{only}"


def examine_schema(connection: psycopg.Connection) -> Iterator[Finding]:
    """Find missing or changed columns, indexes, functions and triggers."""
    altered = find_altered_objects(connection)
    tables = {name.partition(".")[0] for name in altered if name.startswith("column ")}
    for name in sorted(table.removeprefix("column ") for table in tables):
        yield Finding("a table lacks columns", name, _find_remedy(name))
    if others := [name for name in altered if not name.startswith("column ")]:
        yield Finding("the schema is not that of this version", ", ".join(others), MEND)


def examine_damage(
    workspace: Workspace,
    has_month: Callable[[ListMonth], bool],
    lists: Collection[str],
    indexes: Sequence[OpenIndex],
    psql: str = "psql",
) -> Iterator[Finding]:
    """Find damaged rows, files and entries of months that runs can make, and damaged indexes.

    `psql` is the command at the start of remedies in SQL.
    """
    is_whole = True
    encoders = {
        one.mail_index.fingerprint: one.variables
        for one in indexes
        if isinstance(one.mail_index, MailVectors)
    }
    for finding in _examine_rows(workspace, has_month, lists, encoders, psql):
        is_whole = False
        yield finding
    for index in indexes:
        workspace.log(f"{index.mail_index.name}: every entry")
        yield from _examine_index(workspace, index, has_month, is_whole)


def _examine_rows(
    workspace: Workspace,
    has_month: Callable[[ListMonth], bool],
    lists: Collection[str],
    encoders: Mapping[str, str],
    psql: str,
) -> Iterator[Finding]:
    """Find damaged rows and files; `encoders` maps fingerprints to settings of encoders."""
    connection = workspace.connection
    for name in sorted(lists):
        workspace.log(f"list {name}: rows and files")
        found = _Months()
        for one in find_damaged_rows(connection, name):
            if one.month and has_month(one.month):
                found.add(one.asset, one.problem, one.month)
        _examine_files(workspace, name, has_month, encoders, found)
        yield from found.findings()
    contested = _Months()
    for month in find_wrong_contested(connection):
        if has_month(month):
            contested.add("messages", "rows of contested_texts", month)
    yield from contested.findings()
    for table, name in find_unowned_rows(connection):
        remedy = f"{psql} -c \"delete from {table} where list = '{name}'\""
        yield Finding(f"rows of {table} are of months that no run has made", f"list {name}", remedy)
    for corpus, has_changes in _WAITING.items():
        if read_state(connection, corpus) and has_changes(connection):
            yield Finding(
                "not examined: changes wait to be read", f"rows of {corpus.asset}", BACKFILL
            )
    for rows in chain.from_iterable(find(connection) for find in _OF_CORPUS):
        remedy = f"{BACKFILL} --rebuild --only {rows.asset}"
        yield Finding(_DAMAGED, rows.problem, remedy)


class _Months:
    """Damaged months by asset and problem."""

    def __init__(self, variables: str = "") -> None:
        self._variables = variables
        self._found: defaultdict[tuple[str, str, str, str], list[ListMonth]] = defaultdict(list)

    def add(self, asset: str, problem: str, month: ListMonth, variables: str = "") -> None:
        """Add a damaged month; `variables` are the settings of the encoder for the repair."""
        chosen = variables or self._variables
        self._found[asset, problem, chosen, month.list_name].append(month)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each problem of a list, in the order of assets."""
        ordered = sorted(self._found.items(), key=lambda one: ORDER.index(one[0][0]))
        for (asset, problem, variables, _), months in ordered:
            where, remedy = span(months[0].list_name, months)
            again = remedy.replace(BACKFILL, f"{BACKFILL} --rebuild --only {asset}", 1)
            if asset in MADE_FROM_ROWS:  # then the assets that may come from the damaged rows
                again += f" && {remedy}"
            yield Finding(f"{_DAMAGED}: {problem}", where, variables + again)


def _examine_files(
    workspace: Workspace,
    name: str,
    has_month: Callable[[ListMonth], bool],
    encoders: Mapping[str, str],
    found: _Months,
) -> None:
    connection, store = workspace.connection, workspace.store
    states, archives = read_states(connection, [name]), read_archives(connection, [name])
    for month in sorted({*states, *archives}):
        made = states.get(month, {})
        if not has_month(month):
            continue
        if archive := archives.get(month):
            if archive.object_key and not is_intact(store, archive):
                found.add("mbox_archives", "archives", month)
            elif fault := _find_other_entries(workspace, month, archive, made):
                found.add("messages", fault, month)
        elif "mbox_archives" in made:
            found.add("mbox_archives", "rows of mbox_archives", month)
        state = made.get("embeddings")
        if state and state.counts["texts"]:
            fingerprint = state.inputs.rpartition(" ")[2]
            if _lacks_embeddings(workspace, month, fingerprint):
                found.add("embeddings", "embeddings", month, encoders.get(fingerprint, ""))


def _find_other_entries(
    workspace: Workspace, month: ListMonth, archive: ArchiveRow, made: Mapping[str, State]
) -> str:
    """Return a fault if the entries of an archive do not match its messages, else ""."""
    state = made.get("messages")
    if not archive.object_key or state is None or state.inputs.split()[0] != archive.sha256:
        return ""  # messages were read from another file
    entries = read_entries(workspace.connection, month)
    try:
        with local_archive(workspace.store, archive.object_key) as path:
            # one message at a time, because a month can be larger than memory
            same = all(
                (raw.offset, raw.length) == (entry.offset, entry.length)
                and entry.digest in (digest_message(raw), digest_message(raw, raw.from_line))
                for raw, entry in zip(split_archive(path, archive.dialect), entries, strict=True)
            )
    except (ArchiveError, ValueError):  # an archive that cannot be split has no entries
        same = not entries
    return "" if same else "rows of archive_entries"


def _lacks_embeddings(workspace: Workspace, month: ListMonth, fingerprint: str) -> bool:
    store, key = workspace.store, file_key(month, fingerprint)
    if not store.exists(key) or find_fault(store, key, fingerprint):
        return True
    return bool(read_text_hashes(workspace.connection, month) - {*read_hashes(store, key)})


def _examine_index(
    workspace: Workspace,
    one: OpenIndex,
    has_month: Callable[[ListMonth], bool],
    is_whole: bool,
) -> Iterator[Finding]:
    """Compare an index with its manifest, its rows, and the inputs of its entries.

    Keys without a row are reported only if `is_whole`, because damaged rows may be restored.
    """
    index = one.mail_index
    found = _Months(one.variables)
    try:
        index.index.probe()
        keys = reconcile(workspace.connection, index)
        others: set[str] = set()
        for fault in keys.faults:
            if fault.month and has_month(fault.month):
                found.add(index.table, f"entries of {index.name}", fault.month)
            elif fault.fault in ("stale", "foreign"):
                others.add(fault.fault)
        if others and is_whole:
            where = f"{index.name} in {index.url}"
            option = "--repair" if others == {"stale"} else "--repair --delete-foreign"
            remedy = f"{one.variables}mail-assets reconcile {option}"
            yield Finding(
                f"an index has keys that are {' and '.join(sorted(others))}", where, remedy
            )
        damaged = {fault.month for fault in keys.faults}
        for month in intended_months(workspace.connection, index.manifest):
            if has_month(month) and month not in damaged and _is_altered(workspace, one, month):
                found.add(index.table, f"entries of {index.name}", month)
    except MISSING:
        return  # examine_vectors and examine_words report it
    except FAILED as error:
        remedy = f"{one.variables}mail-assets index rebuild {shlex.quote(index.name)}"
        yield Finding(UNREADABLE, str(error), remedy)
        return
    yield from found.findings()


def _is_altered(workspace: Workspace, one: OpenIndex, month: ListMonth) -> bool:
    """Return whether an entry of a month differs from one made now.

    Return False if entries cannot be made: damaged embeddings are another finding.
    """
    keys = compare_month(workspace.connection, one.mail_index, month, None)
    try:
        found = find_altered(one.mail_index, month, keys, partial(one.make, workspace, month))
    except FAILED:
        raise
    except MailAssetsError:
        return False
    return bool(found.altered or found.absent)  # absent: the entry may be under another month
