"""The prepared ONNX file of a profile, built once and kept in a cache directory.

A prepared file's name carries its own SHA-256 and a key over all that it was made from, so one
atomic rename publishes it, two processes at once can only publish good files, and a damaged
file does not bear its name and is built anew. Deleting the cache costs a second.
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

from mail_assets.encoding.model import ModelFileError, sha256_of, verified
from mail_assets.encoding.profiles import GRAPH_VERSION, Profile, check_precision

if TYPE_CHECKING:
    from mail_assets.encoding.graph import BertConfig

logger = logging.getLogger(__name__)

PART = ".part-"  # a folder of the cache in which one process writes a file
STALE_SECONDS = 24 * 3600  # no living process takes a day to write it


def prepare(profile: Profile, precision: str, cache: Path) -> Path:
    """The path of the profile's .onnx file in `cache`, which is made where it is missing.

    Opens the model's own files (ModelFileError) only when there is no good prepared file.
    """
    check_precision(precision)
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    stem = f"{profile.name}.{precision}.{_key(profile, precision)}"
    for path in sorted(cache.glob(f"{stem}.*.onnx")):
        if path.name == _name(stem, sha256_of(path)):
            return path
        # Left in place: the rename below replaces it, and a removal could hit a good successor.
        logger.warning("%s is damaged: building it anew", path)
    return _publish(_build(profile, precision), stem, cache)


def _key(profile: Profile, precision: str) -> str:
    """16 hex characters over everything that the bytes of a prepared file depend on."""
    ingredients = [
        profile.files.weights.sha256,
        profile.files.config.sha256,
        profile.pooling,
        precision,
        GRAPH_VERSION,
        *(metadata.version(package) for package in ("numpy", "onnx", "onnxruntime")),
    ]
    return hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:16]


def _name(stem: str, sha256: str) -> str:
    return f"{stem}.{sha256[:32]}.onnx"


def _build(profile: Profile, precision: str) -> bytes:
    # Imported here: where there is a prepared file, as on every search, neither is needed, and
    # onnx takes as long to import as that file to open.
    from safetensors.numpy import load_file

    from mail_assets.encoding.graph import build

    config: BertConfig = json.loads(
        verified(profile.source, profile.files.config).read_text(encoding="utf-8")
    )
    if config["hidden_size"] != profile.dimension:
        raise ModelFileError(
            f"profile {profile.name} says dimension {profile.dimension}, its config.json "
            f"hidden_size {config['hidden_size']}: correct the profile"
        )
    if config["max_position_embeddings"] < profile.max_tokens:
        raise ModelFileError(
            f"profile {profile.name} says max_tokens {profile.max_tokens}, its config.json "
            f"max_position_embeddings {config['max_position_embeddings']}: correct the profile"
        )
    tensors = load_file(verified(profile.source, profile.files.weights))
    weights = {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
    try:
        model = build(config, weights, profile.pooling, precision)
    except KeyError as missing:
        raise ModelFileError(
            f"{profile.files.weights.path} of profile {profile.name} has no tensor {missing}, "
            "which its config.json asks for: correct the profile"
        ) from missing
    return bytes(model.SerializeToString(deterministic=True))


def _publish(content: bytes, stem: str, cache: Path) -> Path:
    """Write under a temporary name, then rename: whoever looks sees a whole file or none."""
    path = cache / _name(stem, hashlib.sha256(content).hexdigest())
    with tempfile.TemporaryDirectory(dir=cache, prefix=PART) as part:
        written = Path(part) / path.name
        written.write_bytes(content)
        return written.replace(path)


def _sweep(cache: Path) -> None:
    """Remove what processes killed more than a day ago left."""
    limit = time.time() - STALE_SECONDS
    for part in cache.glob(f"{PART}*"):
        with suppress(FileNotFoundError):  # another process sweeps, or has just published
            if part.stat().st_mtime < limit:
                shutil.rmtree(part)
