"""Make the lines of COPY for the rows that a month lacks."""

from collections.abc import Iterator, Mapping

from mail_assets.processes.workers import WorkerPool
from mail_assets.steps.message_rows import RowOrder, make_rows
from mail_assets.steps.month_contents import WantedRow
from mail_assets.steps.month_reader import BATCH_BYTES, BATCH_MESSAGES, MonthReader


def make_lines(
    reader: MonthReader,
    rows: Mapping[int, WantedRow],
    workers: WorkerPool,
    refused: dict[int, str],
) -> Iterator[bytes]:
    """Yield the lines of rows, by ordinal; why one cannot be made goes to `refused`."""
    for _, made in workers.map(make_rows, None, _batches(reader, rows)):
        for row in made:
            if row.reason:
                refused[row.ordinal] = row.reason
            else:
                yield row.line


def _batches(reader: MonthReader, rows: Mapping[int, WantedRow]) -> Iterator[list[RowOrder]]:
    batch: list[RowOrder] = []
    size = 0
    for ordinal, row in rows.items():
        draft = reader.draft(ordinal)
        batch.append(RowOrder(ordinal, row.key[1], row.row_hash, row.match, draft))
        size += len(draft)
        if len(batch) == BATCH_MESSAGES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
