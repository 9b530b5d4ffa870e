"""Upkeep of the table of words: full text and field indexes, compaction, old versions.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

import datetime as dt

from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import Table

from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.words.errors import WordsError


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
    "flags": LabelList(),
}

# Readers may be on an old version while it is cleaned up: queries for seconds, keys() for minutes.
KEEP_VERSIONS = dt.timedelta(days=1)
# Every version but the last; Lance counts in milliseconds, and warns of zero.
ERASE = dt.timedelta(milliseconds=1)
MAINTAIN_ATTEMPTS = 3


def create_indexes(table: Table) -> None:
    """Create the indexes that the table lacks; never one of `key`, or writers duplicate rows."""
    indexed = {column for index in table.list_indices() for column in index.columns}
    for column, config in INDEXES.items():
        if column not in indexed:
            table.create_index(column, config=config)


def maintain_table(table: Table, label: str, erase: bool) -> None:
    """Index what is new, compact, and delete old versions: all of them where `erase` says so.

    Raises:
        WordsError: where writers kept interrupting; nothing is lost, run it again.
    """
    for attempt in range(1, MAINTAIN_ATTEMPTS + 1):
        try:
            with lance_errors(label, WordsError):
                create_indexes(table)
                table.optimize(cleanup_older_than=ERASE if erase else KEEP_VERSIONS)
            return
        except WordsError as error:
            if "commit conflict" not in str(error):
                raise
            if attempt == MAINTAIN_ATTEMPTS:
                raise WordsError(
                    f"{label}: writers interrupted {attempt} attempts to maintain it; nothing is "
                    "lost; run it again when fewer partitions are being written"
                ) from error
