"""Upkeep of the table of words: text and field indexes, compaction, old versions.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import Table

from mail_assets.processes.memory import release_freed_memory
from mail_assets.vectors.lance.conflicts import run_between_writers
from mail_assets.vectors.lance.fragments import (
    Fragment,
    find_rest,
    find_unindexed,
    move_rows,
    read_fragments,
)
from mail_assets.vectors.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.vectors.lance.pruning import clean_table as clean_other_table
from mail_assets.vectors.lance.versions import AT_ONCE, cleanup_age
from mail_assets.words.errors import WordsError

#: Documents beside the index are read one by one, 13 microseconds each for every search. To take
#: them in writes all of it anew, see `catch_up`. While much is added that waits for a share of the
#: table, which makes the work proportional to what was added; otherwise for a day, so that a large
#: table does not wait for a third of its size.
MIN_UNINDEXED, UNINDEXED_SHARE, OLD = 1_000, 1 / 3, dt.timedelta(days=1)
#: What a month is found by: made anew in half a microsecond a document, and so more often. To find
#: one takes 0.15 ms for each fragment that these lack, and each is looked for twice. Small months
#: leave 3 in a second, of which a minute makes 180.
FINDERS, FINDERS_SHARE, FINDERS_OLD = ("list", "month"), 0.05, dt.timedelta(minutes=1)
#: Each commit leaves a fragment. They may be more of a large table, so that moving their rows stays
#: proportional to what was added. To find a month takes 6 to 10 ms among 1,000 fragments and 12 to
#: 29 among 2,500, to add one 10 and 14.
MAX_FRAGMENTS, FRAGMENT_ROWS = 1_000, 200
#: MiB for the postings of a text index that is being made; then they are written, as a part of the
#: index that each search asks. A million messages make 4 parts: 0.65 GB of memory and 42 s, where
#: one part takes 1.07 GB and 49 s, and a search 8 ms with either; 9 ms with 8 parts, of 128 MiB.
#: LanceDB divides the memory among its workers, half of the cores if nothing is said: with one the
#: parts are the same on every machine.
BUILD_MEMORY, BUILD_WORKERS = 256, 1


def _text_index(*, with_position: bool) -> FTS:
    """Return an index of a text whose tokens stay as they are: they are lexemes, see `tokens`."""
    return FTS(
        with_position=with_position,
        base_tokenizer="simple",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
        memory_limit=BUILD_MEMORY,
        num_workers=BUILD_WORKERS,
    )


#: Columns and how they are indexed. A text without an index would be cut by Lance in its own way.
INDEXES: dict[str, FTS | Bitmap | BTree | LabelList] = {
    "lexemes": _text_index(with_position=True),
    "prefixes": _text_index(with_position=False),
    "list": Bitmap(),
    "month": BTree(),
    "sent_at": BTree(),
    "sender": BTree(),
    "message_id": BTree(),
    "flags": LabelList(),
}
TEXTS = ("lexemes", "prefixes")
#: The largest index, and few searches ask for a prefix: it waits for `maintain_table`.
LEFT_TO_THE_END = "prefixes"
#: Quickly merged, and therefore not made anew: Lance compacts only fragments that the same indexes
#: have, so that those which this one lacks stay apart from the others.
MERGED = "flags"


def create_indexes(table: Table) -> None:
    """Create the indexes that the table lacks.

    There is none of `key`, or concurrent writers would duplicate rows. A table of another version
    gets those of the columns that it has.
    """
    indexed = {column for index in table.list_indices() for column in index.columns}
    _index_anew(table, [column for column in INDEXES if column not in indexed])


def _index_anew(table: Table, columns: Iterable[str]) -> None:
    for column in columns:
        if column in table.schema.names:
            release_freed_memory()  # or what the last one used would stay beside this one's
            table.create_index(column, config=INDEXES[column])


def has_much_unindexed(table: Table) -> bool:
    """Tell whether upkeep is due: many fragments, or many documents that are not indexed."""
    rows, fragments = read_size(table)
    if has_many_fragments(fragments, rows) or rows < MIN_UNINDEXED:
        return has_many_fragments(fragments, rows)
    states = read_index_states(table)
    return _needs_maintaining(states) or bool(_grown_columns(states, rows))


def has_many_fragments(fragments: int, rows: int) -> bool:
    """Tell whether a table of so many rows is to have fewer fragments."""
    return fragments > max(MAX_FRAGMENTS, rows // FRAGMENT_ROWS)


def has_grown(state: IndexState, rows: int, share: float = UNINDEXED_SHARE) -> bool:
    """Tell whether the index of a table of so many rows lacks a share of them."""
    return state.unindexed_rows >= max(MIN_UNINDEXED, rows * share)


def _grown_columns(states: Mapping[str, IndexState], rows: int) -> Sequence[str]:
    """Return the columns whose indexes lack so much that they are made anew during a fill."""
    if has_grown(states["lexemes"], rows):
        return [column for column in INDEXES if column != LEFT_TO_THE_END]
    finders = [states[column] for column in FINDERS if column in states]
    return FINDERS if any(_is_slow_to_find(one, rows) for one in finders) else ()


def _is_slow_to_find(finder: IndexState, rows: int) -> bool:
    now = dt.datetime.now(dt.UTC)
    return has_grown(finder, rows, FINDERS_SHARE) or is_outdated(finder, FINDERS_OLD, now)


def _needs_maintaining(states: Mapping[str, IndexState]) -> bool:
    return "lexemes" not in states or _has_outdated(states)


def _has_outdated(states: Mapping[str, IndexState]) -> bool:
    now = dt.datetime.now(dt.UTC)
    return any(is_outdated(states[column], OLD, now) for column in TEXTS if column in states)


def is_outdated(state: IndexState, age: dt.timedelta, now: dt.datetime) -> bool:
    """Tell whether an index is so old and lacks many documents."""
    return state.is_older_than(age, now) and state.unindexed_rows >= MIN_UNINDEXED


def catch_up(table: Table, label: str) -> None:
    """Index what has been added while the table is being filled.

    Where a share is missing, all indexes but that of prefixes are made anew, in 50 microseconds of
    the processor a document; where less is, those that a month is found by. Before a share is
    indexed, and where fragments are many, what is not indexed is moved into one. The files of the
    former indexes stay until the table is maintained, twice what the last ones take: at the end, or
    where the indexes of texts are old, or have many fragments.

    Raises:
        WordsError: where writers kept interrupting; nothing is lost, run it again.
    """
    states = read_index_states(table)
    if _needs_maintaining(states):
        maintain_table(table, label, erase=False)
        return
    rows, small = read_size(table)
    grown = _grown_columns(states, rows)
    new: Sequence[Fragment] = ()
    if "lexemes" in grown or has_many_fragments(small, rows):
        fragments = read_fragments(table)
        new = find_unindexed(fragments, states["lexemes"].unindexed_rows)
        if has_many_fragments(len(fragments) - len(new), rows):
            maintain_table(table, label, erase=False)
            return

    def index_new() -> None:
        move_rows(table, new)
        _index_anew(table, grown)

    run_between_writers(index_new, label, WordsError)


def maintain_table(table: Table, label: str, *, erase: bool) -> None:
    """Index what is new, compact, and delete the versions that no reader needs any more.

    What was added since the last time is moved into one fragment, and the indexes are made anew;
    LanceDB, which deletes old versions only with compacting, finds nothing to compact then. Until
    an index is made searches read what was moved one by one. `erase` leaves nothing of deleted
    documents in any file: every row is moved, and every index made anew, since an index keeps the
    words of a fragment that is gone.

    Raises:
        WordsError: where writers kept interrupting; nothing is lost, run it again.
    """

    def maintain() -> None:
        fragments = read_fragments(table)
        move_rows(table, fragments if erase else find_rest(fragments))
        _index_anew(table, INDEXES if erase else _lacking(table))
        table.optimize(cleanup_older_than=AT_ONCE if erase else cleanup_age(table))

    run_between_writers(maintain, label, WordsError)


def clean_table(table: Table, label: str) -> None:
    """Delete the versions that no reader can be on, of a table of words or another one.

    Raises:
        WordsError, VectorError: where writers kept interrupting; nothing is lost, run it again.
    """
    if {*TEXTS} <= {*table.schema.names}:
        maintain_table(table, label, erase=False)
    else:
        clean_other_table(table, label)


def _lacking(table: Table) -> Sequence[str]:
    """Return the columns whose indexes are missing, or lack documents and are not merged."""
    states = read_index_states(table)
    return [
        column
        for column in INDEXES
        if column not in states or (states[column].unindexed_rows and column != MERGED)
    ]
