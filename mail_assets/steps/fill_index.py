"""Fill one month of an index: the common part of write_vectors and write_words.

The steps differ in the assets that they read, and in how an entry is made.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mail_assets.indexes.mail_index import MailIndex
from mail_assets.indexes.month import compare_month, find_altered, write_month
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome, rate
from mail_assets.tables.indexes import make_first_live, record_index
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    read_state,
    write_state,
)
from mail_assets.workspace import Workspace

#: Returns the entries of some keys of a month.
Make = Callable[[Sequence[str]], Iterable[Any]]


def fill_month(
    workspace: Workspace,
    month: ListMonth,
    mail_index: MailIndex[Any],
    inputs: str,
    make: Make,
    *,
    rebuild: bool = False,
) -> Outcome:
    """Make a month's part of an index equal to its rows, under the lock of the partition.

    `inputs` identify what the entries are made from. The first index of its place that has an entry
    becomes live. With `rebuild` every entry is compared with what is made now.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(mail_index.table, month)
    record_index(connection, mail_index.url, mail_index.record)
    mail_index.ensure(connection)
    state = read_state(connection, partition)
    is_made = state is not None and state.inputs == inputs and not rebuild
    made = int(state.counts[mail_index.total]) if state and is_made else None
    keys = compare_month(connection, mail_index, month, made)
    if rebuild:
        keys = find_altered(mail_index, month, keys, make)
    changes = write_month(connection, mail_index, month, keys, make)
    seconds = time.monotonic() - began
    counts: Counts = {
        mail_index.total: len(keys.wanted),
        **changes._asdict(),
        "seconds": round(seconds, 3),
        f"{mail_index.entries}_per_second": rate(changes.written, seconds),
    }
    entries = (f"{key} {digest.hex()}" for key, digest in keys.wanted.items())
    digest = digest_of(mail_index.manifest.index_name, *entries)
    write_state(connection, partition, State(inputs, digest, counts), any(changes))
    if keys.wanted:
        make_first_live(connection, mail_index.url, mail_index.name)
    return Outcome(counts, digest, any(changes))
