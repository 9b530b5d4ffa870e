"""How many of the chunks that are truly nearest to a question the live index of vectors finds.

    MAIL_HOME=... python -m benchmarks.question_recall [--sources 60]

The home must be filled. Questions are five words and the first words of chunks (search_queries.py),
in the whole index and in the list of the chunk. What is true is told by comparing every vector.
Found is what is as near as the last of the true ones: texts that stand in several messages have
equal vectors. What does not live here: vectors that are near to a stored one (vectors.py), which
are easier to find than the answer to a question.
"""

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.pipeline import machine
from benchmarks.search_queries import KINDS, read_sources
from mail_assets.encoding.open import open_encoder
from mail_assets.search.open import open_index
from mail_assets.settings.settings import load_settings
from mail_assets.tables.indexes import live_index
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Floats, VectorIndex

TOP_K = 50
#: Ranks down to which the found are counted.
DEPTHS = (20, 50)
BATCH = 10_000
#: Distances that differ by less are of one vector.
EQUAL = 1e-5

Distances = npt.NDArray[np.float32]


class Question(NamedTuple):
    """The vector of a question, and the list of the chunk that it is made of."""

    vector: Floats
    list_name: str


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure what an index of vectors finds.")
    parser.add_argument("--sources", type=int, default=60, help="chunks that questions are made of")
    arguments = parser.parse_args()
    settings = load_settings()
    with settings.database.connect("benchmark") as connection:
        live = live_index(connection, settings.vectors)
        if live is None:
            raise SystemExit("no index is live: fill the home first")
        sources = read_sources(connection, arguments.sources)
    index = open_index(settings.database, settings.vectors, live.encoder, live.precision)
    encoder = open_encoder(live.encoder, live.precision, settings.model_cache)
    questions = [
        Question(encoder.encode_query(KINDS[kind](one)), one.list_name)
        for one in sources
        for kind in ("5 words", "sentence")
    ]
    print(f"machine: {machine()}")
    print(f"index: {live.name}, {index.count():,} vectors, {len(questions)} questions\n")
    true = find_true(index, questions)
    filters: dict[str, Sequence[Filter | None]] = {
        "none": [None] * len(questions),
        "list:": [{"list": one.list_name} for one in questions],
    }
    rows = [measure(index, name, questions, filters[name], true[name]) for name in filters]
    print(pd.DataFrame(rows).to_markdown(index=False, floatfmt=".3f"))


def find_true(index: VectorIndex, questions: Sequence[Question]) -> Mapping[str, Distances]:
    """Return the distances of the nearest of all, and of those of the question's list."""
    asked = np.array([one.vector for one in questions])
    lists = np.array([one.list_name for one in questions])
    none = np.full((len(questions), TOP_K), 2.0, np.float32)
    nearest = {"none": none, "list:": none}
    for values, names in _read_all(index):
        distances = 1 - asked @ (values / np.linalg.norm(values, axis=1, keepdims=True)).T
        elsewhere = np.where(lists[:, None] == names[None, :], distances, 2.0)
        for name, found in (("none", distances), ("list:", elsewhere)):
            both = np.concatenate([nearest[name], found], axis=1)
            nearest[name] = np.sort(np.partition(both, TOP_K - 1, axis=1)[:, :TOP_K], axis=1)
    return nearest


def measure(
    index: VectorIndex,
    name: str,
    questions: Sequence[Question],
    filters: Iterable[Filter | None],
    true: Distances,
) -> dict[str, object]:
    """Return a line of the table."""
    found: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    took = []
    for question, where, nearest in zip(questions, filters, true, strict=True):
        index.query(question.vector, TOP_K, where, metadata=False)
        began = time.perf_counter()
        matches = index.query(question.vector, TOP_K, where, metadata=False)
        took.append(1_000 * (time.perf_counter() - began))
        distances = np.array([match.distance for match in matches])
        for depth in DEPTHS:
            wanted = nearest[:depth][nearest[:depth] < 2.0]
            near = np.count_nonzero(distances[:depth] <= wanted[-1] + EQUAL)
            found[depth].append(near / len(wanted))
    p50, p95 = np.quantile(took, (0.5, 0.95))
    return {
        "filter": name,
        **{f"of the true {depth}": np.mean(shares) for depth, shares in found.items()},
        "p50 / p95 ms": f"{p50:.1f} / {p95:.1f}",
    }


def _read_all(index: VectorIndex) -> Iterator[tuple[Floats, npt.NDArray[np.str_]]]:
    """Yield the vectors of an index, and the list of each."""
    keys = index.keys()
    while batch := [*islice(keys, BATCH)]:
        vectors = index.get(batch, data=True).values()
        values = np.array([one.values for one in vectors])
        yield values, np.array([one.metadata["list"] for one in vectors])


if __name__ == "__main__":
    main()
