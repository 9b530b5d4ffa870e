"""Upkeep of the table of words: text and field indexes, compaction, old versions.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

import datetime as dt

from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import Table

from mail_assets.vectors.lance.conflicts import run_between_writers
from mail_assets.vectors.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.vectors.lance.versions import AT_ONCE, cleanup_age, has_deleted_rows
from mail_assets.words.errors import WordsError

#: Documents beside the index are read one by one, 13 microseconds each for every search. To merge
#: them into it writes all of it anew: 12 to 30 s of the processor for each 100,000 documents. While
#: much is added that waits for a share of the table, which makes the work proportional to what was
#: added; otherwise for a day, so that a large table does not wait for a quarter of its size.
MIN_UNINDEXED, UNINDEXED_SHARE, OLD = 1_000, 0.25, dt.timedelta(days=1)
#: Commits that leave a fragment each: a month is found in 43 ms among 400.
MAX_FRAGMENTS = 400


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


def create_indexes(table: Table, *, anew: bool = False) -> None:
    """Create the indexes that the table lacks, or all of them `anew`.

    There is none of `key`, or concurrent writers would duplicate rows. A table of another version
    gets those of the columns that it has.
    """
    indexed = {column for index in table.list_indices() for column in index.columns}
    for column, config in INDEXES.items():
        if column in table.schema.names and (anew or column not in indexed):
            table.create_index(column, config=config)


def has_much_unindexed(table: Table) -> bool:
    """Tell whether upkeep is due: many fragments, or many documents that are not indexed."""
    rows, fragments = read_size(table)
    if fragments > MAX_FRAGMENTS or rows < MIN_UNINDEXED:
        return fragments > MAX_FRAGMENTS
    state = read_index_states(table).get("lexemes")
    return state is None or is_upkeep_due(state, rows, dt.datetime.now(dt.UTC))


def is_upkeep_due(state: IndexState, rows: int, now: dt.datetime) -> bool:
    """Tell whether the index of a table of so many rows lacks enough of them, for so long."""
    if state.unindexed_rows < MIN_UNINDEXED:
        return False
    is_old = state.made_at is None or now - state.made_at >= OLD
    return is_old or state.unindexed_rows >= rows * UNINDEXED_SHARE


def maintain_table(table: Table, label: str, *, erase: bool) -> None:
    """Index what is new, compact, and delete the versions that no reader needs any more.

    Lance merges what is new into each index, so there is one however often this is run. `erase`
    leaves nothing of deleted documents in any file: rows and indexes are written anew, because
    compaction leaves a file with few deleted rows as it is, and a merged index keeps its words.

    Raises:
        WordsError: where writers kept interrupting; nothing is lost, run it again.
    """

    def maintain() -> None:
        rewrite = erase and has_deleted_rows(table)
        if rewrite:
            table.update(values_sql={"key": "key"})
        create_indexes(table, anew=rewrite)
        # not in two steps as vectors are: after those Lance 13 goes on counting deleted documents,
        # and BM25 is 0.7 % beside that of the others
        table.optimize(cleanup_older_than=AT_ONCE if erase else cleanup_age(table))

    run_between_writers(maintain, label, WordsError)
