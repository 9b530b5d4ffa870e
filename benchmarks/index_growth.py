"""What a month costs in a LanceDB index of vectors, by what is in it already.

    python -m benchmarks.index_growth [--commits 400] [--rows 250] [--without-upkeep]
        [--vectors FILE.npy]

Months of random vectors, or of those of a file, are written one after the other, as a backfill
writes them: the keys of the month are looked up, its vectors inserted, and the index is maintained
when that is due. Printed are medians of the last 25 months in milliseconds, beside those of `put`,
which looks for each key in all rows. Then the index is maintained, as in the end of a backfill, and
once more after MORE vectors (Linux). Random vectors are spread evenly; those of mail are not, and
LanceDB moves them between the partitions of its index.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks import processor
from benchmarks.contenders import peak_mb
from mail_assets.indexes.mail_index import month_filter
from mail_assets.indexes.vectors import FIELDS, NON_FILTERABLE
from mail_assets.month import ListMonth, month_number
from mail_assets.vectors.index import IndexSpec, Vector, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.vectors.vector import Floats, Metadata

SPEC = IndexSpec("months", 384, FIELDS, NON_FILTERABLE)
#: Clusters that vectors are drawn around, as mail has topics.
TOPICS = 64
#: Months of a list; then the next begins.
LIST = 400
LAST = 25
#: As many as make the upkeep due.
MORE = 10_000
#: Of each number of a vector that stands for another text: their cosine is 0.96.
NOISE = 0.015


Months: TypeAlias = Iterator[tuple[ListMonth, list[Vector]]]


def make_months(batches: Iterator[Floats]) -> Months:
    """Yield months, each of a batch of vectors."""
    for number, values in enumerate(batches):
        years, place = divmod(number % LIST, 12)
        month = ListMonth(f"list-{number // LIST}", f"{1990 + years}-{place + 1:02d}")
        unit = values / np.linalg.norm(values, axis=1, keepdims=True)
        yield month, [_vector(month, number, *one) for one in enumerate(unit)]


def draw_vectors(rows: int) -> Iterator[Floats]:
    """Yield random vectors around topics, without end."""
    chance = np.random.default_rng(1)
    topics = chance.normal(size=(TOPICS, SPEC.dimension))
    while True:
        values = topics[chance.integers(0, TOPICS, rows)]
        yield (values + 0.7 * chance.normal(size=values.shape)).astype(np.float32)


def read_vectors(file: Path, rows: int) -> Iterator[Floats]:
    """Yield the vectors of a file in their order, from the second round on with noise."""
    chance = np.random.default_rng(1)
    vectors = np.load(file, mmap_mode="r")
    if len(vectors) < rows:
        raise SystemExit(f"{file}: {len(vectors)} vectors, and a month takes {rows}: see --rows")
    for done in count():
        for start in range(0, len(vectors) - rows + 1, rows):
            noise = chance.normal(size=(rows, SPEC.dimension)) if done else 0.0
            yield (vectors[start : start + rows] + NOISE * noise).astype(np.float32)


def _vector(month: ListMonth, number: int, place: int, values: np.ndarray) -> Vector:
    metadata: Metadata = {
        "list": month.list_name,
        "month": month_number(month.month),
        "message_id": f"{number}-{place}@example.org",
        "sender": f"sender-{place}@example.org",
        "sent_at": 1_000_000 * number + place,
        "chunk": 0,
        "kind": "text",
        "subject": "A subject",
        "fingerprint": "random",
    }
    return Vector(f"{number:08d}{place:024d}#0", values, metadata)


def find_month(index: VectorIndex, month: ListMonth) -> list[str]:
    """Return the keys of a month."""
    return [*index.find(month_filter(month))]


def timed(times: list[float], work: Callable[[], object]) -> None:
    """Run some work and note its milliseconds."""
    began = time.perf_counter()
    work()
    times.append(1000 * (time.perf_counter() - began))


def measure_months(
    index: VectorIndex, months: Months, options: argparse.Namespace, folder: Path
) -> None:
    """Write months, and print a row of a table now and then."""
    rows = options.rows
    find: list[float] = []
    insert: list[float] = []
    upkeep: list[float] = []
    print("| months | rows | find | insert | put | query | upkeep s (times) | disk / floats |")
    print("|---|---|---|---|---|---|---|---|")
    for done, (month, vectors) in enumerate(islice(months, options.commits), 1):
        timed(find, partial(find_month, index, month))
        timed(insert, partial(index.insert, vectors))
        if not options.without_upkeep and index.needs_upkeep():
            timed(upkeep, index.catch_up)
        if done % (options.commits // 8) == 0:
            query: list[float] = []
            put: list[float] = []
            for vector in vectors[:20]:
                timed(query, partial(index.query, vector.values, 50))
            for _ in range(3):
                timed(put, partial(index.put, vectors))
            size = measure_disk(folder, rows * done)
            medians = (statistics.median(times[-LAST:]) for times in (find, insert, put, query))
            figures = " | ".join(f"{median:.1f}" for median in medians)
            spent = f"{sum(upkeep) / 1000:.1f} ({len(upkeep)})"
            print(
                f"| {done} | {done * rows:,} | {figures} | {spent} | {size:.2f} |",
                flush=True,
            )


def measure_upkeep(
    index: VectorIndex, months: Months, options: argparse.Namespace, folder: Path
) -> None:
    """Maintain an index that was filled, and again after some more vectors; print what it takes."""
    print("\n| rows | upkeep s | processor s | most memory, MB | disk / floats |")
    print("|---|---|---|---|---|")
    for more in (0, max(1, MORE // options.rows)):
        for _, vectors in islice(months, more):
            index.insert(vectors)
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        _, took = processor.timed(index.maintain)
        rows = index.count()
        figures = f"{took.clock:.1f} | {took.processor:.1f} | {peak_mb():.0f}"
        print(f"| {rows:,} | {figures} | {measure_disk(folder, rows):.2f} |", flush=True)


def measure_disk(folder: Path, rows: int) -> float:
    """Return what the files of so many rows take, of what their floats would."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return size / (4 * SPEC.dimension * rows)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=400)
    parser.add_argument("--rows", type=int, default=250, help="vectors of a month")
    parser.add_argument("--without-upkeep", action="store_true")
    parser.add_argument("--vectors", type=Path, metavar="FILE.npy", help="float32, 384 in a row")
    options = parser.parse_args()
    rows = options.rows
    batches = read_vectors(options.vectors, rows) if options.vectors else draw_vectors(rows)
    months = make_months(batches)
    with tempfile.TemporaryDirectory() as folder:
        index = open_bucket(f"lance:{folder}").index(SPEC)
        index.ensure()
        measure_months(index, months, options, Path(folder))
        if not options.without_upkeep:
            measure_upkeep(index, months, options, Path(folder))


if __name__ == "__main__":
    main()
