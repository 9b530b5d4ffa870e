"""The graph computes BERT by an independent reference, int8 is near it, the table weighs pieces."""

import io
import json

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from mail_assets.encoding.checkpoint import BertConfig, load_tokenizer
from mail_assets.encoding.model_build import (
    SMOOTHING,
    build_table,
    check_architecture,
    quantise_weights,
    serialise_table,
)
from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets_tests.encoding.bert import TINY, WORDS, build, encode, random_weights, reference


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", "roberta"), ("hidden_act", "gelu_new"), ("position_embedding_type", "rope")],
)
def test_another_architecture_is_refused(key: str, value: str) -> None:
    config: BertConfig = json.loads(json.dumps({**TINY, key: value}))
    with pytest.raises(ValueError, match=f"{key}.*{value}"):
        check_architecture(config)


Floats = npt.NDArray[np.float32]


SMALL: BertConfig = {
    **TINY,
    "hidden_size": 384,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 512,
}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@settings(max_examples=50)
@given(
    heads=st.integers(1, 4),
    width=st.integers(1, 8),
    layers=st.integers(1, 3),
    epsilon=st.sampled_from([1e-12, 1e-5, 0.1]),
    ids=st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=20),
    seed=st.integers(0, 1000),
)
def test_any_shape_agrees_with_the_reference(
    pooling: str, heads: int, width: int, layers: int, epsilon: float, ids: list[int], seed: int
) -> None:
    # A hidden size of 1 normalises to nothing but the bias: from 2 on there is arithmetic.
    config: BertConfig = {
        **TINY,
        "hidden_size": heads * (width + 1),
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "layer_norm_eps": epsilon,
    }
    weights = random_weights(config, seed)
    found = encode(build(config, weights, pooling, "fp32"), ids)
    assert found.shape == (config["hidden_size"],)
    expected = reference(config, weights, pooling, ids)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_twelve_layers_agree_with_the_reference() -> None:
    # gte-small and bge-small-en-v1.5 but for their vocabulary. The spread is that of BERT.
    weights = random_weights(SMALL, 1, spread=0.05)
    doubles = {name: values.astype(np.float64) for name, values in weights.items()}
    ids = [number % WORDS for number in range(24)]
    for pooling in ("mean", "cls"):
        expected = reference(SMALL, doubles, pooling, ids)
        exact, near = (encode(build(SMALL, weights, pooling, p), ids) for p in ("fp32", "int8"))
        np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-5)
        assert float(near @ expected) >= 0.99


def test_published_model_agrees_with_the_reference() -> None:
    model = ALL_MINILM_L6_V2
    config: BertConfig = json.loads(verify_file(model.source, model.files.config).read_text())
    weights = load_file(verify_file(model.source, model.files.weights))
    doubles = {name: values.astype(np.float64) for name, values in weights.items()}
    tokenizer = load_tokenizer(model)
    graph = build(config, weights, model.pooling, "fp32")
    session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for text in (
        "",
        "vacuum",
        "Why does autovacuum not remove dead rows while an old transaction is open?",
        "ERROR:  could not serialize access due to concurrent update\n" * 5,
        "Grüße aus Köln: 日本語のメール, naïve café \U0001f44d",
        "planner " * 254,
    ):
        ids = tokenizer.encode(text).ids
        (found,) = session.run(None, {"input_ids": np.array([ids], np.int64)})
        expected = reference(config, doubles, model.pooling, ids)
        assert float(found[0] @ expected) >= 0.99999
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-5)


def run_layers(model: onnx.ModelProto, layers: list[str], ids: list[int]) -> list[Floats]:
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(
        onnx.helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, None) for layer in layers
    )
    session = ort.InferenceSession(shown.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(x) for x in session.run(layers, {"input_ids": np.array([ids], np.int64)})]


def test_each_int8_layer_is_near_that_of_fp32() -> None:
    weights = random_weights(TINY, 1)
    plain, quantised = (build(TINY, weights, "mean", p) for p in ("fp32", "int8"))
    layers = [
        i.name.removesuffix(".scale")
        for i in quantised.graph.initializer
        if i.name.endswith("dense.scale") or i.name.endswith("joined.scale")
    ]
    # Per layer of BERT: query-key-value, attention output, widening, narrowing.
    assert len(layers) == 4 * TINY["num_hidden_layers"]
    ids = [1, 7, 3, 49, 0, 7]
    exact, near = (run_layers(model, layers, ids) for model in (plain, quantised))
    for expected, found in zip(exact, near, strict=True):
        # 0.03 here. Two swapped columns give 0.7, a doubled scale of one layer 0.1 or more.
        assert np.abs(found - expected).max() / np.abs(expected).max() < 0.05


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_graph_is_valid_onnx(precision: str) -> None:
    onnx.checker.check_model(build(TINY, random_weights(TINY, 1), "mean", precision))


@settings(max_examples=100)
@given(
    seed=st.integers(0, 1000), rows=st.integers(1, 9), spread=st.sampled_from([1e-30, 1e-3, 1e4])
)
def test_quantised_weight_is_off_by_half_a_step(seed: int, rows: int, spread: float) -> None:
    weight = np.random.default_rng(seed).normal(0, spread, (rows, 7)).astype(np.float32)
    weight[:, 3] = 0
    values, scales = quantise_weights(weight)
    assert values.dtype == np.int8
    assert np.abs(values.astype(int)).max() <= 127
    # Half a step, and float32 rounding of the quotient.
    error = np.abs(values * scales.astype(np.float64) - weight)
    assert (error <= scales * 0.50001).all()


EMBEDDINGS = np.random.default_rng(0).normal(3, 1, (2_000, 4)).astype(np.float32)


def test_mean_of_all_pieces_is_subtracted() -> None:
    moved = build_table(EMBEDDINGS + np.float32(7))
    np.testing.assert_allclose(moved, build_table(EMBEDDINGS), atol=1e-5)


def test_piece_has_its_smooth_inverse_frequency_weight() -> None:
    harmonic = sum(1 / rank for rank in range(1, len(EMBEDDINGS) + 1))
    centred = EMBEDDINGS - EMBEDDINGS.mean(axis=0)
    for rank in (1, 10, 2_000):
        weight = SMOOTHING / (SMOOTHING + 1 / (rank * harmonic))
        found = build_table(EMBEDDINGS)[rank - 1]
        np.testing.assert_allclose(found, centred[rank - 1] * weight, rtol=1e-3)


def test_half_precision_weights_make_a_table_of_float32() -> None:
    assert build_table(EMBEDDINGS.astype(np.float16)).dtype == np.float32


def test_table_is_read_as_it_was_written() -> None:
    table = build_table(EMBEDDINGS)
    read = np.load(io.BytesIO(serialise_table(table)))
    assert read.tobytes() == table.tobytes()
