"""Upkeep of a LanceDB table gives way to its writers, tries again, and leaves no memory behind.

Writers try again, too: an upkeep that erases deletes the version that one has just read.
"""

from collections.abc import Callable

import pyarrow as pa
from lancedb.table import Table

from mail_assets.processes.memory import release_freed_memory
from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.lance.errors import lance_errors

ATTEMPTS = 3


def run_between_writers(
    work: Callable[[], None], label: str, kind: type[RuntimeError] = VectorError
) -> None:
    """Run `work`, again where a writer was faster; `label` names the table in errors of `kind`.

    Raises:
        RuntimeError: of `kind`, where LanceDB fails, or writers interrupted every attempt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with lance_errors(label, kind):
                work()
            return
        except kind as error:
            if "commit conflict" not in str(error):
                raise
            if attempt == ATTEMPTS:
                raise kind(
                    f"{label}: writers interrupted {attempt} attempts to maintain it; nothing is "
                    "lost; run it again when fewer partitions are being written"
                ) from error
        finally:
            release_freed_memory()


def merge_rows(rows: pa.Table, table: Table) -> None:
    """Insert or overwrite rows by key."""
    merge = table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    merge.use_index(False).execute(rows)


def delete_rows(where: str, table: Table) -> None:
    """Delete the rows that a condition matches."""
    table.delete(where)


def write_beside_upkeep(
    write: Callable[[Table], object],
    open_table: Callable[[], Table],
    label: str,
    kind: type[RuntimeError] = VectorError,
) -> None:
    """Write to a table, once more where upkeep deleted the version that it was read in.

    `write` does by key what may be done twice. Raises errors of `kind`, which name the table by
    `label`.
    """
    try:
        with lance_errors(label, kind):
            write(open_table())
        return
    except kind as error:
        if "Not found" not in str(error):
            raise
    with lance_errors(label, kind):
        write(open_table())
