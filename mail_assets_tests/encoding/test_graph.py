"""The graph computes BERT, by an independent reference in float64."""

import json
import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from mail_assets.encoding.encoder import load_tokenizer
from mail_assets.encoding.graph import BertConfig, build, quantise
from mail_assets.encoding.model import verified
from mail_assets.encoding.profiles import ALL_MINILM_L6_V2

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

TINY: BertConfig = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "max_position_embeddings": 20,
    "layer_norm_eps": 1e-12,
}
WORDS = 50
erf = np.vectorize(math.erf, otypes=[np.float64])


def reference(
    config: BertConfig, weights: Mapping[str, npt.NDArray[np.generic]], pooling: str, ids: list[int]
) -> Doubles:
    """The vector, written from the paper, token by token where that is clearer."""
    w = {name: np.asarray(values, np.float64) for name, values in weights.items()}
    heads = config["num_attention_heads"]

    def norm(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + config["layer_norm_eps"])
        return np.asarray(scaled * w[f"{name}.weight"] + w[f"{name}.bias"])

    def linear(x: Doubles, name: str) -> Doubles:
        return np.asarray(x @ w[f"{name}.weight"].T + w[f"{name}.bias"])

    hidden = np.stack(
        [
            w["embeddings.word_embeddings.weight"][token]
            + w["embeddings.position_embeddings.weight"][position]
            + w["embeddings.token_type_embeddings.weight"][0]
            for position, token in enumerate(ids)
        ]
    )
    hidden = norm(hidden, "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            np.split(linear(hidden, f"{name}.attention.self.{part}"), heads, axis=1)
            for part in ("query", "key", "value")
        )
        context = []
        for q, k, v in zip(query, key, value, strict=True):
            scores = np.exp(q @ k.T / math.sqrt(q.shape[1]))
            context.append(scores / scores.sum(axis=1, keepdims=True) @ v)
        attended = linear(np.concatenate(context, axis=1), f"{name}.attention.output.dense")
        hidden = norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        wide = linear(hidden, f"{name}.intermediate.dense")
        active = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        hidden = norm(hidden + linear(active, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    pooled = hidden.mean(axis=0) if pooling == "mean" else hidden[0]
    return np.asarray(pooled / np.linalg.norm(pooled))


def tiny_weights(config: BertConfig, seed: int) -> dict[str, Floats]:
    size, random = config["hidden_size"], np.random.default_rng(seed)

    def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
        yield "embeddings.word_embeddings.weight", (WORDS, size)
        yield "embeddings.position_embeddings.weight", (config["max_position_embeddings"], size)
        yield "embeddings.token_type_embeddings.weight", (2, size)
        norms, linears = ["embeddings.LayerNorm"], {}
        for layer in range(config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}."
            norms += [f"{name}attention.output.LayerNorm", f"{name}output.LayerNorm"]
            for part in ("self.query", "self.key", "self.value", "output.dense"):
                linears[f"{name}attention.{part}"] = (size, size)
            linears[f"{name}intermediate.dense"] = (4 * size, size)
            linears[f"{name}output.dense"] = (size, 4 * size)
        for name in norms:
            yield f"{name}.weight", (size,)
            yield f"{name}.bias", (size,)
        for name, shape in linears.items():
            yield f"{name}.weight", shape
            yield f"{name}.bias", shape[:1]

    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes()}


def run(model: onnx.ModelProto, ids: list[int]) -> Floats:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"input_ids": np.array([ids], np.int64)})[0])


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@settings(deadline=None, max_examples=50, derandomize=True)
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
    weights = tiny_weights(config, seed)
    found = run(build(config, weights, pooling, "fp32"), ids)
    assert found.shape == (1, config["hidden_size"])
    expected = reference(config, weights, pooling, ids)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=2e-5)


def test_the_published_model_agrees_with_the_reference() -> None:
    profile = ALL_MINILM_L6_V2
    config: BertConfig = json.loads(verified(profile.source, profile.files.config).read_text())
    weights = load_file(verified(profile.source, profile.files.weights))
    tokenizer = load_tokenizer(profile)
    model = build(config, weights, profile.pooling, "fp32")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
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
        expected = reference(config, weights, profile.pooling, ids)
        assert float(found[0] @ expected) >= 0.99999
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-5)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    seed=st.integers(0, 1000), rows=st.integers(1, 9), spread=st.sampled_from([1e-30, 1e-3, 1e4])
)
def test_a_quantised_weight_is_off_by_half_a_step_at_most(
    seed: int, rows: int, spread: float
) -> None:
    weight = np.random.default_rng(seed).normal(0, spread, (rows, 7)).astype(np.float32)
    weight[:, 3] = 0
    values, scales = quantise(weight)
    assert values.dtype == np.int8
    assert np.abs(values.astype(int)).max() <= 127
    # Half a step, and float32 rounding of the quotient.
    error = np.abs(values * scales.astype(np.float64) - weight)
    assert (error <= scales * 0.50001).all()


def test_the_quantised_graph_is_near_the_plain_one_and_holds_its_layers_in_int8() -> None:
    weights = tiny_weights(TINY, 1)
    plain, quantised = (build(TINY, weights, "mean", precision) for precision in ("fp32", "int8"))
    ids = [1, 7, 3, 49, 0, 7]
    assert float((run(plain, ids) @ run(quantised, ids).T)[0, 0]) >= 0.98
    products = [node.op_type for node in quantised.graph.node]
    # Per layer: query-key-value, attention output, widening, narrowing.
    assert products.count("DynamicQuantizeMatMul") == 4 * TINY["num_hidden_layers"]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_graph_is_valid_onnx(precision: str) -> None:
    onnx.checker.check_model(build(TINY, tiny_weights(TINY, 1), "mean", precision))


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", "roberta"), ("hidden_act", "gelu_new"), ("position_embedding_type", "rope")],
)
def test_another_architecture_is_refused(key: str, value: str) -> None:
    config: BertConfig = json.loads(json.dumps({**TINY, key: value}))
    with pytest.raises(ValueError, match=f"{key}.*{value}"):
        build(config, tiny_weights(TINY, 1), "mean", "fp32")
