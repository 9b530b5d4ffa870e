"""Throughput, processor time, memory, query latency and agreement of the encoder on real mail.

    python -m benchmarks.encoding ARCHIVES [--chunks 600] [--reference PYTHON]

ARCHIVES holds mbox months, plain or .gz. PYTHON is an interpreter with sentence-transformers, for
comparison; where it is not given, this one is tried. Every contender encodes the same chunks in a
process of its own: one text to warm up, then three passes, of which the fastest counts.
What does not live here: the quality of search.
"""

import argparse
import email
import gzip
import importlib
import importlib.util
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

PROFILE = "all-minilm-l6-v2"
PASSES = 3
FROM_LINE = re.compile(rb"^From .*\d\d:\d\d:\d\d.*\n", re.MULTILINE)
QUERY = "why does autovacuum not remove dead rows"

Vectors = npt.NDArray[np.float32]
Contender = tuple[Callable[[list[str]], Vectors], Callable[[str], Vectors]]


@dataclass(frozen=True)
class Result:
    """What a contender measured of itself; the vectors go to a file."""

    chunks_per_s: float
    cpu_ms_per_chunk: float
    peak_mb: float
    query_p50_ms: float
    query_p95_ms: float


def ours(precision: str, cache: str) -> Contender:
    """The encoder of this package."""
    from mail_assets.encoding.encoder import load_encoder

    encoder = load_encoder(PROFILE, precision, Path(cache))
    return encoder.encode_documents, encoder.encode_query


def sentence_transformers(folder: str) -> Contender:
    """The usual library with its defaults: torch, batches of 32, sorted by length."""
    # By name, for type checking where it is not installed.
    library = importlib.import_module("sentence_transformers")
    model = library.SentenceTransformer(folder, device="cpu")

    def encode(texts: list[str]) -> Vectors:
        return np.asarray(model.encode(texts, show_progress_bar=False), np.float32)

    def query(text: str) -> Vectors:
        return np.asarray(model.encode(text, show_progress_bar=False), np.float32)

    return encode, query


def measure(contender: Contender, chunks: list[str]) -> tuple[Result, Vectors]:
    """Run in the contender's own process."""
    encode, query = contender
    vectors = encode(chunks[:1])
    passes = []
    for _ in range(PASSES):
        wall, cpu = time.perf_counter(), time.process_time()
        vectors = encode(chunks)
        passes.append((time.perf_counter() - wall, time.process_time() - cpu))
    latencies = []
    for number in range(200):
        wall = time.perf_counter()
        query(f"{QUERY} {number}")
        latencies.append(1000 * (time.perf_counter() - wall))
    p50, p95 = np.percentile(latencies, [50, 95])
    wall, cpu = min(passes)
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


def bodies(archives: Path) -> Iterator[str]:
    """The plain text of every message, without quoted lines."""
    for path in sorted(archives.iterdir()):
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for message in FROM_LINE.split(raw)[1:]:
            for part in email.message_from_bytes(message).walk():
                if part.get_content_type() == "text/plain":
                    payload = part.get_payload(decode=True)
                    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
                    yield "".join(
                        line for line in text.splitlines(keepends=True) if not line.startswith(">")
                    )


def sample(archives: Path, count: int) -> tuple[list[str], float]:
    """`count` chunks of at most the profile's size, and their mean length in tokens."""
    from mail_assets.encoding.encoder import load_tokenizer
    from mail_assets.encoding.profiles import find_profile

    profile = find_profile(PROFILE)
    tokenizer = load_tokenizer(profile)
    chunks: list[str] = []
    for body in bodies(archives):
        offsets = tokenizer.encode(body, add_special_tokens=False).offsets
        for first in range(0, len(offsets), profile.sizes.target):
            last = min(first + profile.sizes.target, len(offsets)) - 1
            chunks.append(body[offsets[first][0] : offsets[last][1]])
    if len(chunks) < count:
        raise SystemExit(f"{archives} gives {len(chunks)} chunks, fewer than --chunks {count}")
    chosen = random.Random(0).sample(chunks, count)
    lengths = [len(encoding) for encoding in tokenizer.encode_batch_fast(chosen)]
    return chosen, float(np.mean(lengths))


def in_own_process(python: str, kind: str, argument: str, chunks: Path) -> tuple[Result, Vectors]:
    """Measure one contender in a fresh interpreter."""
    vectors = chunks.with_suffix(".npy")
    root = Path(__file__).resolve().parent.parent
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    command = [python, __file__, "--measure", kind, argument, str(chunks), str(vectors)]
    output = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return Result(**json.loads(output.splitlines()[-1])), np.load(vectors)


def measured(kind: str, argument: str, chunks: str, vectors: str) -> None:
    """The other side of `in_own_process`."""
    contender = sentence_transformers(argument) if kind == "reference" else ours(kind, argument)
    result, encoded = measure(contender, json.loads(Path(chunks).read_text()))
    np.save(vectors, encoded)
    print(json.dumps(asdict(result)))


def processor() -> str:
    """The processor's name, where Linux tells it."""
    information = Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", information)
    return found[1] if found else platform.machine()


def compare(archives: Path, count: int, reference: str | None) -> None:
    """Run every contender and print the table."""
    import onnxruntime
    import pandas as pd

    from mail_assets.encoding.cores import physical_cores
    from mail_assets.encoding.model import verified
    from mail_assets.encoding.prepare import prepare
    from mail_assets.encoding.profiles import PRECISIONS, find_profile

    profile = find_profile(PROFILE)
    chosen, tokens = sample(archives, count)
    with tempfile.TemporaryDirectory() as folder:
        chunks = Path(folder) / "chunks.json"
        chunks.write_text(json.dumps(chosen))
        runs = {}
        for precision in PRECISIONS:
            # Beforehand, so that the peak memory is that of encoding.
            prepare(profile, precision, Path(folder))
            runs[f"ours, {precision}"] = in_own_process(sys.executable, precision, folder, chunks)
        if reference is not None:
            model = verified(profile.source, profile.files.weights).parent
            runs["sentence-transformers"] = in_own_process(
                reference, "reference", str(model), chunks
            )
    exact = runs["ours, fp32"][1]
    rows = []
    for name, (result, vectors) in runs.items():
        cosines = (vectors * exact).sum(axis=1)
        agreement = {"cosine_to_fp32_mean": cosines.mean(), "cosine_to_fp32_min": cosines.min()}
        rows.append({"contender": name, **asdict(result), **agreement})
    cores = f"{physical_cores()} cores usable, load {os.getloadavg()[0]:.1f}"
    print(f"machine: {processor()}, {cores}, onnxruntime {onnxruntime.__version__}")
    print(f"data: {count} chunks of {archives.name}, mean {tokens:.0f} tokens; model {PROFILE}")
    print(pd.DataFrame(rows).round(4).to_string(index=False))


def main() -> None:
    """Parse the command line; `--measure` is for this program's own use."""
    if sys.argv[1:2] == ["--measure"]:
        measured(*sys.argv[2:])
        return
    here = sys.executable if importlib.util.find_spec("sentence_transformers") else None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("archives", type=Path, help="folder of mbox months, plain or .gz")
    parser.add_argument("--chunks", type=int, default=600)
    parser.add_argument("--reference", default=here, help="Python with sentence-transformers")
    options = parser.parse_args()
    compare(options.archives, options.chunks, options.reference)


if __name__ == "__main__":
    main()
