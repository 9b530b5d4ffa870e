"""The prepared ONNX file of a local model, built once and kept in a cache directory.

A prepared file's name carries its own SHA-256 and a key over all that it was made from, so one
atomic rename publishes it, two processes at once can only publish good files, and a damaged
file does not bear its name and is built again. Deleting the cache costs a second.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mail_assets.encoding.local_model import GRAPH_VERSION, LocalModel, check_precision
from mail_assets.encoding.model_files import ModelFileError, hash_file, verify_file

if TYPE_CHECKING:
    from mail_assets.encoding.bert_config import BertConfig

logger = logging.getLogger(__name__)

PART_PREFIX = ".part-"  # a folder of the cache in which one process writes a file
STALE_SECONDS = 24 * 3600  # no living process takes a day to write it


def prepare_model(model: LocalModel, precision: str, cache: Path) -> Path:
    """The path of the model's .onnx file in `cache`, which is made where it is missing.

    Opens the model's own files (ModelFileError) only when there is no good prepared file.
    """
    check_precision(precision)
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    stem = f"{model.name}.{precision}.{_key(model, precision)}"
    for path in sorted(cache.glob(f"{stem}.*.onnx")):
        if path.name == _name(stem, hash_file(path)):
            return path
        # Left in place: the rename below replaces it, and a removal could hit a good successor.
        logger.warning("%s is damaged: building it again", path)
    return _publish(_build(model, precision), stem, cache)


def _key(model: LocalModel, precision: str) -> str:
    """16 hex characters over everything that the bytes of a prepared file depend on."""
    ingredients = [
        model.files.weights.sha256,
        model.files.config.sha256,
        model.pooling,
        precision,
        GRAPH_VERSION,
        *(metadata.version(package) for package in ("numpy", "onnx", "onnxruntime")),
    ]
    return hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:16]


def _name(stem: str, sha256: str) -> str:
    return f"{stem}.{sha256[:32]}.onnx"


def _build(model: LocalModel, precision: str) -> bytes:
    # Imported here: where there is a prepared file, as on every search, neither is needed, and
    # onnx takes as long to import as that file to open.
    from safetensors.numpy import load_file

    from mail_assets.encoding.graph import build_graph

    config: BertConfig = json.loads(
        verify_file(model.source, model.files.config).read_text(encoding="utf-8")
    )
    if config["hidden_size"] != model.dimension:
        raise ModelFileError(
            f"model {model.name} says dimension {model.dimension}, its config.json "
            f"hidden_size {config['hidden_size']}: correct model_catalog.py"
        )
    if config["max_position_embeddings"] < model.max_tokens:
        raise ModelFileError(
            f"model {model.name} says max_tokens {model.max_tokens}, its config.json "
            f"max_position_embeddings {config['max_position_embeddings']}: correct model_catalog.py"
        )
    tensors = load_file(verify_file(model.source, model.files.weights))
    weights = {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
    try:
        graph = build_graph(config, weights, model.pooling, precision)
    except KeyError as missing:
        raise ModelFileError(
            f"{model.files.weights.path} of model {model.name} has no tensor {missing}, "
            "which its config.json asks for: correct model_catalog.py"
        ) from missing
    return bytes(graph.SerializeToString(deterministic=True))


def _publish(content: bytes, stem: str, cache: Path) -> Path:
    """Write under a temporary name, then rename: whoever looks sees a whole file or none."""
    path = cache / _name(stem, hashlib.sha256(content).hexdigest())
    with tempfile.TemporaryDirectory(dir=cache, prefix=PART_PREFIX) as part:
        written = Path(part) / path.name
        written.write_bytes(content)
        return written.replace(path)


def _sweep(cache: Path) -> None:
    """Remove what processes killed more than a day ago left."""
    limit = time.time() - STALE_SECONDS
    for part in cache.glob(f"{PART_PREFIX}*"):
        with suppress(FileNotFoundError):  # another process sweeps, or has just published
            if part.stat().st_mtime < limit:
                shutil.rmtree(part)
