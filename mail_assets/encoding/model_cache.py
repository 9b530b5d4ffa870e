"""Build the prepared file of a local model once, and keep it in a cache directory.

It is an ONNX graph, or a table of vectors at precision `static`; model_build.py builds it. Its name
has its own SHA-256 and a key over everything from which it was built. An atomic rename publishes
it, so readers never see an incomplete file. A damaged file does not match its name and is built
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
STALE_SECONDS = 24 * 3600  # an older folder is left from a killed process


def prepare_model(model: LocalModel, precision: str, cache: Path) -> Path:
    """Return the path of the model's prepared file in `cache`; create both if missing."""
    check_precision(precision)
    make_private_folder(cache)
    _sweep(cache)
    stem = f"{model.name}.{precision}.{_key(model, precision)}"
    kind = "npy" if precision == STATIC else "onnx"
    for path in sorted(cache.glob(f"{stem}.*.{kind}")):
        if path.name == _name(stem, digest_file(path), kind):
            return path
        # Not removed: the rename below replaces it, and a removal could hit another process's file.
        logger.warning("%s is damaged: building it again", path)
    # Imported here: importing onnx takes as long as opening a file, and a search needs no build.
    from mail_assets.encoding.model_build import build_prepared

    content = build_prepared(model, precision)
    return _publish(content, cache / _name(stem, hashlib.sha256(content).hexdigest(), kind))


def _key(model: LocalModel, precision: str) -> str:
    """Return a digest, 16 hex characters, of everything that determines a prepared file."""
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
    """Write under a temporary name, then rename, so that readers see a complete file or none."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=PART_PREFIX) as part:
        written = Path(part) / path.name
        written.write_bytes(content)
        return written.replace(path)


def _sweep(cache: Path) -> None:
    """Remove the unfinished files of processes that were killed more than a day ago."""
    limit = time.time() - STALE_SECONDS
    for part in cache.glob(f"{PART_PREFIX}*"):
        with suppress(FileNotFoundError):  # another process removed or published it
            if part.stat().st_mtime < limit:
                shutil.rmtree(part)
