"""Any BERT checkpoint as published: float16 or float32, with a pooler or without, in a folder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.model_files import (
    FolderSource,
    HubSource,
    ModelFileError,
    PackageSource,
    verify_file,
)
from mail_assets.encoding.models import LOCAL_MODELS, Pooling, find_local_model
from mail_assets_tests.encoding import checkpoints
from mail_assets_tests.encoding.bert import TINY, random_weights, reference

NOWHERE = PackageSource("no-such-model", "1.0", "model")
TEXT = "a bad cab"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
@pytest.mark.parametrize("pooler", [False, True], ids=["no pooler", "pooler"])
def test_a_checkpoint_computes_what_its_weights_say(
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
def test_a_models_folder_replaces_its_source(name: str, tmp_path: Path) -> None:
    assert find_local_model(name, tmp_path).source == LOCAL_MODELS[name].source
    (tmp_path / name).mkdir()
    model = find_local_model(name, tmp_path)
    assert model.source == FolderSource(tmp_path / name, LOCAL_MODELS[name].source)
    assert model.fingerprint("int8") == LOCAL_MODELS[name].fingerprint("int8")
    with pytest.raises(ModelFileError, match=f"found no file.*{tmp_path / name}"):
        prepare_model(model, "int8", tmp_path)


def test_a_missing_file_of_a_folder_says_how_to_get_it(tmp_path: Path) -> None:
    source = FolderSource(tmp_path, HubSource("somebody/tiny", "f" * 40))
    file = LOCAL_MODELS["gte-small"].files.config
    with pytest.raises(ModelFileError) as refusal:
        verify_file(source, file)
    for part in (file.sha256, "hf download somebody/tiny config.json --revision ffff", "copy it"):
        assert part in str(refusal.value)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    files = checkpoints.checkpoint()
    one_layer_more = checkpoints.checkpoint({**TINY, "num_hidden_layers": 3})["config.json"]
    files = {**files, "config.json": one_layer_more}
    model = checkpoints.model(files, NOWHERE)
    source = FolderSource(checkpoints.write(files, tmp_path / "tiny"), NOWHERE)
    with pytest.raises(ModelFileError, match=r"model\.safetensors.*encoder\.layer\.2"):
        prepare_model(replace(model, source=source), "fp32", tmp_path)
