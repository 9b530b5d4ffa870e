"""Compare the vector buckets that run on one machine: LanceDB, pgvector, exact numpy.

    python -m benchmarks.vectors [--store STORE] [--counts 100000] [--backends lance,pgvector]

STORE is a folder that the pipeline filled (MAIL_STORE). Its embeddings are used, and repeated with
noise if there are too few. Without STORE, clustered vectors are invented. Each count has a fresh
bucket. The filters match 27 %, 1 % and 0.1 % of the vectors at random.

All queries use the same index object as search does, and return metadata. "numpy" is an exact
search over the same matrix in memory. Remote services are not measured, because their latency is
the network's. pipeline.py measures the other stages.
"""

import argparse
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mail_assets.postgres.database import MAIL, embedded, embedded_dsn
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Bucket, Floats, IndexSpec, Vector, VectorIndex
from mail_assets.vectors.open import open_bucket

TOP_K = 20
QUERIES = 100
MONTH = 15_000

#: Noise of a repeated vector and of a query, relative to the length of the original vector: cosine
#: similarities of 0.94 and 0.86.
NOISE, QUERY_NOISE = 0.35, 0.6

#: The filters, and the share of the vectors that each one matches.
FILTERS: dict[str, tuple[Filter | None, float]] = {
    "none": (None, 1.0),
    "27 %": ({"list": "large"}, 0.27),
    "1 %": ({"list": "small"}, 0.01),
    "0.1 %": ({"sender": "rare@example.org"}, 0.001),
}


COLUMNS = (
    *("vectors", "backend", "put/s", "s/15,000", "maintain s", "MB"),
    *("filter", "p50 ms", "p95 ms", "recall@20"),
)


class Data(NamedTuple):
    """Vectors of shape (n, dimension), queries, and the rows that each filter matches."""

    values: Floats
    queries: Floats
    rows: dict[str, npt.NDArray[np.intp]]


class Answer(NamedTuple):
    """Figures of a filter's queries: milliseconds, and the mean share of the true top 20."""

    p50: float
    p95: float
    recall: float


def main() -> None:
    """Measure; print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure the vector buckets.")
    parser.add_argument("--store", type=Path, help="a store that the pipeline filled")
    parser.add_argument("--counts", default="100000", help="numbers of vectors: 10000,100000")
    parser.add_argument("--backends", default="lance,pgvector,numpy")
    arguments = parser.parse_args()
    base = read_store(arguments.store) if arguments.store else made_up(20_000)
    source = f"{len(base)} embeddings of a store" if arguments.store else "made up"
    print(f"machine: {os.cpu_count()} cores; data: {source}, {base.shape[1]} dimensions\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    for count in map(int, arguments.counts.split(",")):
        data = make_data(base, count)
        truth = {name: exact(data, name) for name in FILTERS}
        for backend in arguments.backends.split(","):
            measure(backend, data, truth)


def read_store(folder: Path) -> Floats:
    """Return all distinct vectors of a store's embedding files."""
    files = sorted(folder.glob("embeddings/*/*/*.parquet"))
    if not files:
        raise SystemExit(f"{folder}: has no embeddings; run a backfill with this MAIL_STORE")
    tables = [pq.read_table(file, columns=["vector"]) for file in files]
    parts = [t.column("vector").combine_chunks().flatten().to_numpy() for t in tables if len(t)]
    dimension = tables[0].schema.field("vector").type.list_size
    return np.unique(np.concatenate(parts).reshape(-1, dimension), axis=0)


def made_up(count: int, dimension: int = 384) -> Floats:
    """Return unit vectors around 500 centres that share 60 directions."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((500, 60)) @ rng.standard_normal((60, dimension))
    return _unit(_shaken(_unit(centres)[rng.integers(0, 500, count)], 0.7, rng))


def make_data(base: Floats, count: int) -> Data:
    """Return `count` vectors of or near `base`, with queries and the rows of each filter."""
    rng = np.random.default_rng(1)
    picked = base[np.arange(count) % len(base)]
    picked[len(base) :] = _shaken(picked[len(base) :], NOISE, rng)
    queries = _unit(_shaken(base[rng.choice(len(base), QUERIES, replace=False)], QUERY_NOISE, rng))
    order = rng.permutation(count)
    cut = int(count * 0.27)
    small, rare = max(TOP_K, count // 100), max(TOP_K, count // 1000)
    rows = {
        "none": np.arange(count),
        "27 %": np.sort(order[:cut]),
        "1 %": np.sort(order[cut : cut + small]),
        "0.1 %": np.sort(rng.permutation(count)[:rare]),
    }
    return Data(_unit(picked), queries, rows)


def _shaken(values: Floats, noise: float, rng: np.random.Generator) -> Floats:
    step = rng.standard_normal(values.shape, dtype=np.float32)
    step *= np.float32(noise / np.sqrt(values.shape[1]))
    shaken: Floats = (values + step).astype(np.float32)
    return shaken


def _unit(values: npt.NDArray[np.floating]) -> Floats:
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit: Floats = (values / lengths).astype(np.float32)
    return unit


def exact(data: Data, name: str) -> list[list[int]]:
    """Return the row numbers of the true nearest vectors of each query."""
    rows = data.rows[name]
    similarities = data.queries @ data.values[rows].T
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :TOP_K]
    return [[*map(int, row)] for row in rows[nearest]]


def measure(backend: str, data: Data, truth: dict[str, list[list[int]]]) -> None:
    """Fill a fresh bucket, ask all queries, print a row for each filter."""
    if backend == "numpy":
        answers = {
            name: ask(data, truth[name], functools.partial(in_memory, data, name))
            for name in FILTERS
        }
        report(backend, data, ("", "", "", data.values.nbytes / 1e6), answers)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            index = _open(backend, home).index(_spec(data.values.shape[1]))
            index.ensure()
            filling = fill(index, data)
            answers = {
                name: ask(data, truth[name], functools.partial(near, index, where))
                for name, (where, _) in FILTERS.items()
            }
            facts = index.describe()
            size = int(facts.get("bytes", 0)) or _size(home / "bucket")
            report(f"{backend} ({facts['search']})", data, (*filling, size / 1e6), answers)
        finally:
            if backend == "pgvector":
                embedded(home).remove()


def fill(index: VectorIndex, data: Data) -> tuple[float, float, float]:
    """Put all vectors; return vectors/s, seconds for one month again, seconds of upkeep."""
    vectors = list(_vectors(data))
    began = time.perf_counter()
    for start in range(0, len(vectors), MONTH):
        index.put(vectors[start : start + MONTH])
    rate = len(vectors) / (time.perf_counter() - began)
    began = time.perf_counter()
    index.maintain()
    upkeep = time.perf_counter() - began
    began = time.perf_counter()
    index.put(vectors[-MONTH:])  # a month again, into a full bucket
    again = time.perf_counter() - began
    index.maintain()
    return rate, again, upkeep


def ask(data: Data, truth: list[list[int]], nearest: Callable[[Floats], list[int]]) -> Answer:
    """Ask every query, after a warm-up with the first one."""
    nearest(data.queries[0])
    times, found = [], []
    for query, wanted in zip(data.queries, truth, strict=True):
        began = time.perf_counter()
        rows = nearest(query)
        times.append((time.perf_counter() - began) * 1000)
        found.append(len({*rows} & {*wanted}) / len(wanted))
    p50, p95 = np.percentile(times, [50, 95])
    return Answer(float(p50), float(p95), float(np.mean(found)))


def near(index: VectorIndex, where: Filter | None, query: Floats) -> list[int]:
    """Return the row numbers found by an index."""
    return [int(match.key) for match in index.query(query, TOP_K, where)]


def in_memory(data: Data, name: str, query: Floats) -> list[int]:
    """Return the row numbers found by exact search in memory."""
    rows = data.rows[name]
    similarities = (data.values if name == "none" else data.values[rows]) @ query
    best = np.argpartition(-similarities, TOP_K - 1)[:TOP_K]
    return [*map(int, rows[best])]


def report(
    backend: str, data: Data, filling: tuple[float | str, ...], answers: dict[str, Answer]
) -> None:
    """Print the rows of one backend."""
    facts = [f"{fact:.1f}" if isinstance(fact, float) else fact for fact in filling]
    for name, (p50, p95, recall) in answers.items():
        row = [len(data.values), backend, *facts, name, f"{p50:.1f}", f"{p95:.1f}", f"{recall:.4f}"]
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def _spec(dimension: int) -> IndexSpec:
    return IndexSpec("bench", dimension, {"list": "string", "sender": "string", "month": "number"})


def _vectors(data: Data) -> Iterator[Vector]:
    large, small, rare = ({*data.rows[name].tolist()} for name in ("27 %", "1 %", "0.1 %"))
    for row, values in enumerate(data.values):
        name = "large" if row in large else "small" if row in small else f"list-{row % 20}"
        sender = "rare@example.org" if row in rare else f"sender-{row % 3_000}@example.org"
        month = 199501 + row // MONTH
        yield Vector(str(row), values, {"list": name, "sender": sender, "month": month})


def _open(backend: str, home: Path) -> Bucket:
    if backend == "pgvector":
        return open_bucket("pgvector:", dsn=embedded_dsn(home, MAIL))
    return open_bucket(f"{backend}:{home / 'bucket'}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
