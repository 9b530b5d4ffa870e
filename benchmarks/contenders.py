"""Measure one contender of the encoder's benchmark in its own process.

    python benchmarks/contenders.py KIND ARGUMENT CHUNKS.json VECTORS.npy PASSES

encoding.py runs this with the interpreter that has the contender's library. Each library is
imported only when its contender is measured. KIND is int8 or fp32 (ARGUMENT: the cache of prepared
models) or sentence-transformers (the model's folder).
"""

import importlib
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

MODEL = "all-minilm-l6-v2"
QUERY = "why does autovacuum not remove dead rows"
QUERIES = 200

Vectors = npt.NDArray[np.float32]
Contender = tuple[Callable[[list[str]], Vectors], Callable[[str], Vectors]]


@dataclass(frozen=True)
class Result:
    """Figures of a contender, measured in its own process; the vectors go to a file."""

    chunks_per_s: float
    cpu_ms_per_chunk: float
    peak_mb: float
    query_p50_ms: float
    query_p95_ms: float


def ours(precision: str, cache: str) -> Contender:
    """The encoder of this package."""
    from mail_assets.encoding.local_encoder import open_local_encoder

    encoder = open_local_encoder(MODEL, precision, Path(cache))
    return encoder.encode_documents, encoder.encode_query


def sentence_transformers(folder: str) -> Contender:
    """The usual library with its defaults: torch, batches of 32, sorted by length."""
    # Imported by name, so that type checking works where it is not installed.
    library = importlib.import_module("sentence_transformers")
    model = library.SentenceTransformer(folder, device="cpu")

    def encode(texts: list[str]) -> Vectors:
        return np.asarray(model.encode(texts, show_progress_bar=False), np.float32)

    def query(text: str) -> Vectors:
        return np.asarray(model.encode(text, show_progress_bar=False), np.float32)

    return encode, query


def measure(contender: Contender, chunks: list[str], passes: int) -> tuple[Result, Vectors]:
    """Encode one text to warm up, then all chunks `passes` times; the fastest pass counts."""
    encode, query = contender
    vectors = encode(chunks[:1])
    times = []
    for _ in range(passes):
        wall, cpu = time.perf_counter(), time.process_time()
        vectors = encode(chunks)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    latencies = []
    for number in range(QUERIES):
        wall = time.perf_counter()
        query(f"{QUERY} {number}")
        latencies.append(1000 * (time.perf_counter() - wall))
    p50, p95 = np.percentile(latencies, [50, 95])
    wall, cpu = min(times)
    result = Result(
        chunks_per_s=len(chunks) / wall,
        cpu_ms_per_chunk=1000 * cpu / len(chunks),
        peak_mb=peak_mb(),
        query_p50_ms=float(p50),
        query_p95_ms=float(p95),
    )
    return result, vectors


def peak_mb() -> float:
    """Peak resident memory. Not ru_maxrss, which a child process inherits from its parent."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if found is None:
        raise RuntimeError("/proc/self/status has no VmHWM line: run this benchmark on Linux")
    return int(found[1]) / 1000


def main(kind: str, argument: str, chunks: str, vectors: str, passes: str) -> None:
    """Measure one contender; the result goes to standard output as JSON."""
    is_other = kind == "sentence-transformers"
    contender = sentence_transformers(argument) if is_other else ours(kind, argument)
    result, encoded = measure(contender, json.loads(Path(chunks).read_text()), int(passes))
    np.save(vectors, encoded)
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main(*sys.argv[1:])
