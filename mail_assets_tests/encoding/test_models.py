"""The fingerprint changes with everything that changes the meaning of a vector, and only then."""

import subprocess
import sys
from dataclasses import replace

import pytest

from mail_assets.encoding import models
from mail_assets.encoding.model_files import ModelFile, PackageSource
from mail_assets.encoding.models import (
    ALL_MINILM_L6_V2,
    LOCAL_MODELS,
    PRECISIONS,
    LocalModel,
    find_local_model,
)
from mail_assets.encoding.open import compute_fingerprint

FILES = ALL_MINILM_L6_V2.files
SIZES = ALL_MINILM_L6_V2.sizes
OTHER = ModelFile("other", "0" * 64)
NOWHERE = PackageSource("no-such-model", "1.0", "model")

DIFFERENT = {
    "weights": replace(ALL_MINILM_L6_V2, files=FILES._replace(weights=OTHER)),
    "config": replace(ALL_MINILM_L6_V2, files=FILES._replace(config=OTHER)),
    "tokenizer": replace(ALL_MINILM_L6_V2, files=FILES._replace(tokenizer=OTHER)),
    "pooling": replace(ALL_MINILM_L6_V2, pooling="cls"),
    "max_tokens": replace(ALL_MINILM_L6_V2, max_tokens=128),
    "query prefix": replace(ALL_MINILM_L6_V2, query_prefix="query: "),
    "document prefix": replace(ALL_MINILM_L6_V2, document_prefix="query: "),
    "target": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(target=201)),
    "chunk's max_tokens": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(max_tokens=201)),
    "min_tokens": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(min_tokens=201)),
    "overlap": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(overlap=201)),
    "max_chars": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(max_chars=201)),
    "max_chunks": replace(ALL_MINILM_L6_V2, sizes=SIZES._replace(max_chunks=201)),
}


def test_each_ingredient_gives_a_fingerprint_of_its_own() -> None:
    found = {ALL_MINILM_L6_V2.fingerprint(precision) for precision in PRECISIONS}
    found |= {model.fingerprint("int8") for model in DIFFERENT.values()}
    assert len(found) == len(PRECISIONS) + len(DIFFERENT)


@pytest.mark.parametrize("version", ["GRAPH_VERSION", "CHUNKER_VERSION"])
def test_the_versions_of_our_own_code_are_ingredients(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ALL_MINILM_L6_V2.fingerprint("int8")
    monkeypatch.setattr(models, version, "another")
    assert ALL_MINILM_L6_V2.fingerprint("int8") != before


def test_name_and_source_do_not_change_the_fingerprint() -> None:
    moved = replace(ALL_MINILM_L6_V2, name="renamed", source=NOWHERE)
    assert moved.fingerprint("int8") == ALL_MINILM_L6_V2.fingerprint("int8")


def test_the_fingerprint_needs_no_model_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compute_fingerprint("all-minilm-l6-v2", "int8")
    moved = replace(ALL_MINILM_L6_V2, source=NOWHERE)
    monkeypatch.setitem(LOCAL_MODELS, "all-minilm-l6-v2", moved)
    assert compute_fingerprint("all-minilm-l6-v2", "int8") == before
    assert len(before) == 16
    assert int(before, 16) >= 0


@pytest.mark.parametrize("model", LOCAL_MODELS.values(), ids=LOCAL_MODELS.keys())
def test_a_chunk_of_the_largest_size_fits_between_cls_and_sep(model: LocalModel) -> None:
    assert model.sizes.max_tokens + 2 <= model.max_tokens


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'minilm'.*all-minilm-l6-v2"):
        find_local_model("minilm")


def test_an_unknown_precision_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'fp16'.*int8, fp32"):
        compute_fingerprint("all-minilm-l6-v2", "fp16")


def test_checking_a_models_name_loads_no_engine() -> None:
    code = "import sys, mail_assets.encoding.models; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    heavy = {b"onnx", b"onnxruntime", b"safetensors", b"numpy"}
    assert not heavy & set(loaded.stdout.split())
