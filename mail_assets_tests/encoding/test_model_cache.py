"""The cache holds one good prepared file, even after damage, kills and parallel processes."""

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import onnxruntime as ort
import pytest

from mail_assets.encoding.checkpoint import BertConfig
from mail_assets.encoding.model_cache import STALE_SECONDS, prepare_model
from mail_assets.encoding.model_files import FolderSource, ModelFileError, PackageSource
from mail_assets.encoding.models import LocalModel
from mail_assets_tests.encoding import checkpoints
from mail_assets_tests.encoding.bert import TINY
from mail_assets_tests.waits import LONG

FILES = checkpoints.checkpoint()
# With this source a model's own files cannot be read: what is returned comes from the cache.
WITHOUT_FILES = checkpoints.model(FILES, PackageSource("no-such-model", "1.0", "model"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = checkpoints.write(FILES, tmp_path_factory.mktemp("published") / "tiny")
    return replace(WITHOUT_FILES, source=FolderSource(folder, WITHOUT_FILES.source))


@pytest.fixture(scope="module")
def prepared(model: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_model(model, "int8", tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def copy(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(prepared, tmp_path / prepared.name))


def test_prepared_file_is_used_again_without_the_models_files(prepared: Path) -> None:
    before = prepared.stat()
    assert prepare_model(WITHOUT_FILES, "int8", prepared.parent) == prepared
    assert prepared.stat().st_mtime_ns == before.st_mtime_ns


def test_empty_cache_needs_the_models_files(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no-such-model"):
        prepare_model(WITHOUT_FILES, "int8", tmp_path)


@pytest.mark.parametrize("damage", [
    pytest.param(lambda content: b"", id="empty"),
    pytest.param(lambda content: content[: len(content) // 2], id="half-written"),
    pytest.param(lambda content: content[:999] + b"\0\xff" + content[1001:], id="altered"),
])  # fmt: skip
def test_damaged_prepared_file_is_built_again(
    damage: Callable[[bytes], bytes], model: LocalModel, prepared: Path, copy: Path
) -> None:
    good = prepared.read_bytes()
    copy.write_bytes(damage(good))
    with pytest.raises(ModelFileError, match="no-such-model"):
        prepare_model(WITHOUT_FILES, "int8", copy.parent)
    assert prepare_model(model, "int8", copy.parent) == copy
    assert copy.read_bytes() == good
    assert list(copy.parent.iterdir()) == [copy]


def test_precision_and_pooling_have_files_of_their_own(prepared: Path, copy: Path) -> None:
    cache = copy.parent
    for model, precision in (
        (WITHOUT_FILES, "fp32"),
        (replace(WITHOUT_FILES, pooling="cls"), "int8"),
    ):
        with pytest.raises(ModelFileError, match="no-such-model"):
            prepare_model(model, precision, cache)


@pytest.mark.parametrize(("change", "contradiction"), [
    ({"dimension": 13}, "dimension 13.*hidden_size 12"),
    ({"max_tokens": 21}, "max_tokens 21.*position_embeddings 20"),
])  # fmt: skip
def test_model_that_its_files_contradict_is_refused(
    change: dict[str, int], contradiction: str, model: LocalModel, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=contradiction):
        prepare_model(replace(model, **change), "int8", tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_unknown_precision_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'fp16'.*int8, fp32"):
        prepare_model(WITHOUT_FILES, "fp16", tmp_path)


def test_old_files_of_killed_processes_are_removed(copy: Path) -> None:
    old, young = copy.parent / ".part-old", copy.parent / ".part-young"
    for part in (old, young):
        part.mkdir()
        (part / copy.name).write_bytes(b"half")
    then = time.time() - STALE_SECONDS - 1
    os.utime(old, (then, then))
    prepare_model(WITHOUT_FILES, "int8", copy.parent)
    assert sorted(copy.parent.iterdir()) == [young, copy]  # the young one may yet be alive


def prepare_together(model: LocalModel, cache: Path, barrier: Barrier) -> None:
    """Run in each process: exits with an error unless the file it was given loads."""
    import mail_assets.encoding.model_build  # noqa: F401 - so that all begin to build at once

    barrier.wait()
    path = prepare_model(model, "int8", cache)
    ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_processes_at_once_end_with_one_good_file(tmp_path: Path) -> None:
    config: BertConfig = {**TINY, "hidden_size": 384, "num_attention_heads": 12}  # 4 MB in int8
    files = checkpoints.checkpoint(config)
    source = FolderSource(checkpoints.write(files, tmp_path / "model"), WITHOUT_FILES.source)
    model = checkpoints.model(files, source, config=config)
    expected = prepare_model(model, "int8", tmp_path / "alone")
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3, timeout=LONG)  # where one of them dies
    cache = tmp_path / "cache"
    processes = [
        context.Process(target=prepare_together, args=(model, cache, barrier)) for _ in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    (published,) = cache.iterdir()
    assert published.name == expected.name
    assert published.read_bytes() == expected.read_bytes()
