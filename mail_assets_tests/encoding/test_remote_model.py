"""Remote models: a name that holds all of one, its sizes, its fingerprint."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.encoding.open import (
    compute_fingerprint,
    find_dimension,
    open_tokenizer,
    resolve_model,
    short_name,
)
from mail_assets.encoding.remote_encoder import RemoteModel
from mail_assets.indexes.vectors import index_name, index_spec
from mail_assets.text.chunking import build_document, chunk_body

LOCAL = RemoteModel("nomic-embed-text:v1.5", "http://127.0.0.1:11434/v1")

models = st.builds(
    RemoteModel,
    model=st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="@")
    ).filter(bool),
    url=st.sampled_from(["https://api.openai.com/v1", "http://[::1]:8000/v1"]),
    dimension=st.none() | st.integers(1, 4096),
    max_tokens=st.integers(700, 8192),
    query_prefix=st.text(max_size=40),
    document_prefix=st.text(max_size=40),
    batch=st.integers(1, 2048),
    in_flight=st.integers(1, 64),
)


@settings(max_examples=100)
@given(models)
def test_a_name_holds_all_of_a_model(model: RemoteModel) -> None:
    assert resolve_model(model.name) == model
    assert compute_fingerprint(model.name, "served") == model.fingerprint()
    assert index_name(model.name, "served").endswith(model.fingerprint())


def test_a_name_says_no_more_than_it_must() -> None:
    assert LOCAL.name == "openai:nomic-embed-text:v1.5@http://127.0.0.1:11434/v1"
    assert replace(LOCAL, dimension=256).name == f"{LOCAL.name}?dimension=256"


@settings(max_examples=50)
@given(models.map(lambda model: replace(model, dimension=4)))
def test_every_model_has_an_index_that_every_bucket_takes(model: RemoteModel) -> None:
    assert index_spec(model.name, "served").dimension == find_dimension(model.name) == 4


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("text-embedding-3-small", "text-embedding-3-small"),
        ("BAAI/bge-m3", "bge-m3"),
        ("hf.co/org/Model_X:Q4_K_M", "model-x-q4-k-m"),
        ("text-embedding-3-large-of-ours", "text-embedding-3-large"),
        ("/", ""),
    ],
)
def test_an_index_bears_the_models_own_name(model: str, short: str) -> None:
    assert short_name(RemoteModel(model).name) == short


@settings(max_examples=100)
@given(models)
def test_chunks_of_the_largest_size_fit_with_prefix_and_markers(model: RemoteModel) -> None:
    sizes = model.sizes
    assert sizes.max_tokens + len(model.document_prefix.encode()) + 2 == model.max_tokens
    assert 0 <= sizes.overlap < sizes.target <= 400
    assert sizes.target <= sizes.max_tokens


@pytest.mark.parametrize("text", ["x" * 30_000, "ภาษาไทย" * 3000, "word " * 9000, "漢字" * 4000])
def test_no_chunk_is_longer_in_characters_than_tokens_can_be(text: str) -> None:
    tokenizer = open_tokenizer(LOCAL.name)
    pieces = chunk_body(text, [(0, len(text))], "a subject", tokenizer, LOCAL.sizes).chunks
    assert len(pieces) > 1
    for piece in pieces:
        seen = build_document("a subject", piece.text)
        assert len(tokenizer.encode(seen).ids) <= LOCAL.max_tokens
        assert len(piece.text) <= 4 * LOCAL.max_tokens


@pytest.mark.parametrize(
    "change",
    [
        {"model": "nomic-embed-text:v1"},
        {"url": "http://gpu-box:11434/v1"},
        {"dimension": 256},
        {"max_tokens": 1024},
        {"query_prefix": "search_query: "},
        {"document_prefix": "search_document: "},
    ],
)
def test_what_changes_a_vectors_meaning_changes_the_fingerprint(change: dict[str, object]) -> None:
    assert replace(LOCAL, **change).fingerprint() != LOCAL.fingerprint()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 64},
        {"in_flight": 8},
        {"url": "http://127.0.0.1:8080/v1"},
        {"url": "https://127.0.0.1/api/v1"},
    ],
)
def test_what_only_changes_how_it_is_reached_does_not(change: dict[str, object]) -> None:
    assert replace(LOCAL, **change).fingerprint() == LOCAL.fingerprint()  # type: ignore[arg-type]


def test_a_fingerprint_is_what_it_was() -> None:
    # another one would have everybody encode, and pay for, everything again
    assert LOCAL.fingerprint() == "e5963b37921b9153"


def test_local_models_are_found_by_the_same_functions() -> None:
    assert resolve_model("all-minilm-l6-v2") is ALL_MINILM_L6_V2
    assert compute_fingerprint("all-minilm-l6-v2", "int8") == ALL_MINILM_L6_V2.fingerprint("int8")
    assert short_name("all-minilm-l6-v2") == "all-minilm-l6-v2"
    assert find_dimension("all-minilm-l6-v2") == 384
