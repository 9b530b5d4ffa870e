"""Measure speed, memory, query latency and accuracy of the encoder on real mail.

    python -m benchmarks.encoding ARCHIVES [--chunks 2000] [--passes 1]
                                  [--sentence-transformers PYTHON]

ARCHIVES is a folder of mbox months. PYTHON is an interpreter that has the library; without it only
the encoder is measured. The contenders encode the same chunks one after the other, each in its own
process (contenders.py).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import pandas as pd
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from benchmarks.contenders import MODEL, Result, Vectors
from benchmarks.pipeline import machine
from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.model_build import IR_VERSION, OPSET, quantise_weights
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import GRAPH_PRECISIONS, find_local_model
from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.processes.machine import count_physical_cores
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import build_document, chunk_body


class MailChunk(NamedTuple):
    """The text of one chunk as the encoder sees it, and its number of tokens."""

    message_id: str
    text: str
    tokens: int


def messages(archives: Path, dialect: str) -> Iterator[Message]:
    """Yield each readable message of a folder of monthly archives, each id once."""
    seen: set[str] = set()
    for path in sorted(archives.iterdir()):
        for raw in split_archive(path, dialect):
            try:
                message = parse_message(raw, month="2000-01", dialect=dialect)
            except UnreadableMessageError:
                continue
            if message.message_id not in seen:
                seen.add(message.message_id)
                yield message


def chunks_of(message: Message, tokenizer: Tokenizer, sizes: ChunkSizes) -> Iterator[MailChunk]:
    """Yield the chunks of a message, as the pipeline cuts them."""
    body = message.body_text
    spans = new_text_spans(body, segment_body(body))
    for piece in chunk_body(body, spans, message.subject_base, tokenizer, sizes).chunks:
        text = build_document(message.subject_base, piece.text)
        yield MailChunk(message.message_id, text, piece.tokens)


LAYERS, WIDTH, INNER = 6, 384, 1536
PEAK_SIZE = 1024  # rows, columns and depth of the matrix product that measures the peak


def sample(archives: Path, dialect: str, count: int) -> tuple[list[str], list[int]]:
    """Return `count` random chunks, and their lengths in tokens with [CLS] and [SEP]."""
    local = find_local_model(MODEL)
    tokenizer = load_tokenizer(local)
    found = [
        chunk
        for message in messages(archives, dialect)
        for chunk in chunks_of(message, tokenizer, local.sizes)
    ]
    if len(found) < count:
        raise SystemExit(f"{archives}: has {len(found)} chunks, fewer than --chunks {count}")
    chosen = random.Random(0).sample(found, count)
    return [c.text for c in chosen], [c.tokens + 2 for c in chosen]


def gflop(lengths: Iterable[int]) -> float:
    """Return the multiplications and additions of the model's matrix products, in 1e9."""
    dense = 2 * LAYERS * (4 * WIDTH**2 + 2 * WIDTH * INNER)
    return sum(n * (dense + 4 * LAYERS * WIDTH * n) for n in lengths) / 1e9


def peak_gflops(precision: str) -> float:
    """Return GFLOP/s of one core on a large matrix product in ONNX Runtime, best of 20."""
    size, generator = PEAK_SIZE, np.random.default_rng(0)
    weight = generator.standard_normal((size, size), dtype=np.float32)
    constants: dict[str, npt.NDArray[np.generic]] = {"weight": weight}
    node = helper.make_node("MatMul", ["x", "weight"], ["y"])
    if precision == "int8":
        values, scales = quantise_weights(weight)
        constants = {"weight": values, "scale": scales, "zero": np.zeros(size, np.int8)}
        node = helper.make_node(
            "DynamicQuantizeMatMul", ["x", *constants], ["y"], domain="com.microsoft"
        )
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, size]) for name in "xy"
    ]
    initial = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "peak", tensors[:1], tensors[1:], initial)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        session.run(None, {"x": weight})
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def in_own_process(
    python: str, kind: str, argument: str, chunks: Path, passes: int
) -> tuple[Result, Vectors]:
    """Measure one contender in a fresh interpreter."""
    vectors = chunks.with_suffix(".npy")
    output = _run(python, kind, argument, str(chunks), str(vectors), str(passes))
    return Result(**json.loads(output.splitlines()[-1])), np.load(vectors)


def _run(python: str, *arguments: str) -> str:
    root = Path(__file__).resolve().parent.parent
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    command = [python, str(root / "benchmarks" / "contenders.py"), *arguments]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def compare(
    folder: Path, chosen: list[str], other: str | None, passes: int
) -> dict[str, tuple[Result, Vectors]]:
    """Run every contender; `other` is the interpreter of sentence-transformers."""
    local = find_local_model(MODEL)
    model = str(verify_file(local.source, local.files.weights).parent)
    chunks = folder / "chunks.json"
    chunks.write_text(json.dumps(chosen))
    runs = {}
    for precision in GRAPH_PRECISIONS:
        # Prepared first, so that the peak memory is that of encoding.
        prepare_model(local, precision, folder)
        runs[f"ours, {precision}"] = in_own_process(
            sys.executable, precision, str(folder), chunks, passes
        )
    if other:
        name = "sentence-transformers"
        runs[name] = in_own_process(other, name, model, chunks, passes)
    return runs


def table(runs: dict[str, tuple[Result, Vectors]], work: float, count: int) -> pd.DataFrame:
    """Return a row for each contender; `gflops` does not count padding."""
    exact = runs["ours, fp32"][1]
    slowest = min(result.chunks_per_s for result, _ in runs.values())
    rows = []
    for name, (result, vectors) in runs.items():
        cosines = (vectors * exact).sum(axis=1)
        rows.append(
            {
                "contender": name,
                **asdict(result),
                "gflops": work / count * result.chunks_per_s,
                "times_slowest": result.chunks_per_s / slowest,
                "cosine_mean": cosines.mean(),
                "cosine_min": cosines.min(),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Parse the command line, run every contender, print the table."""
    parser = argparse.ArgumentParser(description="Compare the encoder with usual libraries.")
    parser.add_argument("archives", type=Path, help="folder of mbox months")
    parser.add_argument("--dialect", default="plain")
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=1, help="passes; the fastest counts")
    parser.add_argument("--sentence-transformers", help="interpreter with this library and torch")
    options = parser.parse_args()
    chosen, lengths = sample(options.archives, options.dialect, options.chunks)
    with tempfile.TemporaryDirectory() as folder:
        runs = compare(Path(folder), chosen, options.sentence_transformers, options.passes)
    cores = f"{count_physical_cores()} usable, load {os.getloadavg()[0]:.1f}"
    print(f"machine: {machine()}, {cores}, onnxruntime {ort.__version__}")
    print(
        f"data: {options.chunks} chunks of {options.archives.name}, "
        f"mean {np.mean(lengths):.0f} tokens; model {MODEL}"
    )
    peaks = ", ".join(f"{kind} {peak_gflops(kind):.0f}" for kind in ("fp32", "int8"))
    print(f"peak of one core, {PEAK_SIZE}-wide matrix product, GFLOP/s: {peaks}")
    print(table(runs, gflop(lengths), options.chunks).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
