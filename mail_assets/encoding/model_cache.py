"""The prepared file of a local model, built once and kept in a cache directory.

It is an ONNX graph, or a table of vectors at precision `static`; model_build.py builds it. Its name
carries its own SHA-256 and a key over all that it was made from. One atomic rename publishes it, so
several processes can only publish good files. A damaged file does not match its name and is built
again. The cache may be deleted at any time: building takes a second.
"""

import hashlib
import json
import logging
import shutil
import tempfile
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from mail_assets.encoding.models import (
    GRAPH_VERSION,
    STATIC,
    TABLE_VERSION,
    LocalModel,
    check_precision,
)
from mail_assets.files import digest_file, make_private_folder

logger = logging.getLogger(__name__)

PART_PREFIX = ".part-"  # a folder of the cache in which one process writes a file
STALE_SECONDS = 24 * 3600  # no living process takes a day to write it


def prepare_model(model: LocalModel, precision: str, cache: Path) -> Path:
    """Return the path of the model's prepared file in `cache`; both are made if missing."""
    check_precision(precision)
    make_private_folder(cache)
    _sweep(cache)
    stem = f"{model.name}.{precision}.{_key(model, precision)}"
    kind = "npy" if precision == STATIC else "onnx"
    for path in sorted(cache.glob(f"{stem}.*.{kind}")):
        if path.name == _name(stem, digest_file(path), kind):
            return path
        # Left in place: the rename below replaces it, and a removal could hit a good successor.
        logger.warning("%s is damaged: building it again", path)
    # onnx takes as long to import as a prepared file to open, and a search needs only the file.
    from mail_assets.encoding.model_build import build_prepared

    content = build_prepared(model, precision)
    return _publish(content, cache / _name(stem, hashlib.sha256(content).hexdigest(), kind))


def _key(model: LocalModel, precision: str) -> str:
    """Return 16 hex characters over everything that the bytes of a prepared file depend on."""
    ingredients = [
        model.files.weights.sha256,
        model.files.config.sha256,
        model.files.tokenizer.sha256,
        model.pooling,
        model.centred,
        precision,
        TABLE_VERSION if precision == STATIC else GRAPH_VERSION,
        *(metadata.version(package) for package in ("numpy", "onnx", "onnxruntime")),
    ]
    return hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:16]


def _name(stem: str, sha256: str, kind: str) -> str:
    return f"{stem}.{sha256[:32]}.{kind}"


def _publish(content: bytes, path: Path) -> Path:
    """Write under a temporary name, then rename: readers see a whole file or none."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=PART_PREFIX) as part:
        written = Path(part) / path.name
        written.write_bytes(content)
        return written.replace(path)


def _sweep(cache: Path) -> None:
    """Remove the unfinished files of processes that were killed more than a day ago."""
    limit = time.time() - STALE_SECONDS
    for part in cache.glob(f"{PART_PREFIX}*"):
        with suppress(FileNotFoundError):  # another process sweeps, or has just published
            if part.stat().st_mtime < limit:
                shutil.rmtree(part)
