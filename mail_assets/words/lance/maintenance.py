"""The indexes of the table of words, and how much may wait for them (lance/upkeep.py)."""

from __future__ import annotations

import datetime as dt
from functools import partial

from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import Table

from mail_assets.lance.upkeep import Indexes, Limits, TableUpkeep
from mail_assets.lance.upkeep import clean_table as clean_other_table
from mail_assets.vectors.index import VectorError
from mail_assets.words.errors import WordsError

LIMITS = Limits(
    # Documents beside the index are read one by one, 13 microseconds each for every search. To take
    # them in makes all indexes anew, 50 microseconds of the processor a document. While much is
    # added that waits for a share of the table, which makes the work proportional to what was
    # added; otherwise for a day, so that a large table does not wait for a third of its size.
    least=1_000,
    share=1 / 3,
    old=dt.timedelta(days=1),
    # To find months takes 0.15 ms for each fragment that their indexes lack, twice a run. Small
    # ones leave 3 in a second; the indexes of a million take 2 s to make.
    finders_share=0.1,
    finders_old=dt.timedelta(minutes=4),
    # Each commit leaves a fragment. To find a month takes 6 to 10 ms among 1,000 fragments and 12
    # to 29 among 2,500, to add one 10 and 14.
    fragments=1_000,
    fragment_rows=200,
)
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
#: The largest index, and few searches ask for a prefix.
LEFT_TO_THE_END = "prefixes"
MERGED = "flags"


def plan_upkeep(table: Table, label: str) -> TableUpkeep:
    """Return the upkeep of a table; one of another version has the indexes of its columns.

    There is none of `key`, or concurrent writers would duplicate rows.
    """
    return TableUpkeep(
        table,
        Indexes(
            [column for column in INDEXES if column in table.schema.names],
            main="lexemes",
            postponed=[LEFT_TO_THE_END],
            merged=MERGED,
        ),
        LIMITS,
        partial(_create_index, table),
        label,
        WordsError,
    )


def _create_index(table: Table, column: str) -> None:
    table.create_index(column, config=INDEXES[column])


def clean_table(table: Table, label: str) -> None:
    """Delete the versions that no reader can be on, of a table of words or another one.

    Raises:
        WordsError, VectorError: where writers kept interrupting; nothing is lost, run it again.
    """
    if {*TEXTS} <= {*table.schema.names}:
        plan_upkeep(table, label).maintain()
    else:
        clean_other_table(table, label, VectorError)
