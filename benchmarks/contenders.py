"""Measure one contender of the encoder's benchmark in its own process.

    python benchmarks/contenders.py KIND ARGUMENT CHUNKS.json VECTORS.npy PASSES

encoding.py runs this with the interpreter that has the contender's library. Each library is
imported only when its contender is measured. KIND is int8 or fp32 (ARGUMENT: the cache of prepared
models), sentence-transformers (the model's folder), fastembed (a folder with model.onnx), or
export, which writes that folder from the model's folder with PyTorch.
"""

import importlib
import json
import re
import shutil
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


def fastembed(folder: str) -> Contender:
    """The library fastembed (ONNX Runtime) with its defaults: batches of 256, not sorted."""
    library = importlib.import_module("fastembed")
    model = library.TextEmbedding(
        "sentence-transformers/all-MiniLM-L6-v2", specific_model_path=folder
    )

    def encode(texts: list[str]) -> Vectors:
        return np.array(list(model.embed(texts)), np.float32)

    def query(text: str) -> Vectors:
        return np.asarray(next(iter(model.query_embed(text))), np.float32)

    return encode, query


def export(folder: str, target: Path) -> None:
    """Write the model in `folder` to `target` as the plain ONNX that fastembed expects."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    example = tokenizer(["one text", "a second, longer text"], padding=True, return_tensors="pt")
    target.mkdir(parents=True, exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class Bert(torch.nn.Module):  # type: ignore[misc,name-defined]
        """The model with positional inputs, as the exporter passes them."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = model

        def forward(self, *inputs: object) -> object:
            return self.bert(**dict(zip(names, inputs, strict=True))).last_hidden_state

    torch.onnx.export(
        Bert(),
        tuple(example[name] for name in names),
        str(target / "model.onnx"),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in [*names, "last_hidden_state"]},
        opset_version=17,
        dynamo=False,
    )
    tokenizer.save_pretrained(str(target))
    settings = target / "tokenizer_config.json"
    limits = {"model_max_length": 256, "max_length": 256}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | limits))
    shutil.copy(Path(folder) / "config.json", target)
    # Left out by transformers 5, asked for by fastembed.
    special = {name: str(getattr(tokenizer, name)) for name in ("cls_token", "sep_token")}
    special |= {name: str(getattr(tokenizer, name)) for name in ("pad_token", "unk_token")}
    (target / "special_tokens_map.json").write_text(json.dumps(special))


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
    if kind == "export":
        export(argument, Path(vectors))
        return
    makers = {"sentence-transformers": sentence_transformers, "fastembed": fastembed}
    contender = makers[kind](argument) if kind in makers else ours(kind, argument)
    result, encoded = measure(contender, json.loads(Path(chunks).read_text()), int(passes))
    np.save(vectors, encoded)
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main(*sys.argv[1:])
