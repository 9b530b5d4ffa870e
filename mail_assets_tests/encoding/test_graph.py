"""The graph computes BERT, by an independent reference in float64."""

import json

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from mail_assets.encoding.model_build import BertConfig, build_graph
from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.encoding.tokenizer import load_tokenizer
from mail_assets_tests.encoding.bert import TINY, WORDS, random_weights, reference

Floats = npt.NDArray[np.float32]


SMALL: BertConfig = {
    **TINY,
    "hidden_size": 384,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 512,
}


def run(model: onnx.ModelProto, ids: list[int]) -> Floats:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"input_ids": np.array([ids], np.int64)})[0])


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
    found = run(build_graph(config, weights, pooling, "fp32"), ids)
    assert found.shape == (1, config["hidden_size"])
    expected = reference(config, weights, pooling, ids)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=2e-5)


def test_twelve_layers_of_the_usual_width_agree_with_the_reference() -> None:
    # gte-small and bge-small-en-v1.5 but for their vocabulary. The spread is that of BERT.
    weights = random_weights(SMALL, 1, spread=0.05)
    doubles = {name: values.astype(np.float64) for name, values in weights.items()}
    ids = [number % WORDS for number in range(24)]
    for pooling in ("mean", "cls"):
        expected = reference(SMALL, doubles, pooling, ids)
        exact, near = (
            run(build_graph(SMALL, weights, pooling, p), ids)[0] for p in ("fp32", "int8")
        )
        np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-5)
        assert float(near @ expected) >= 0.99


def test_the_published_model_agrees_with_the_reference() -> None:
    model = ALL_MINILM_L6_V2
    config: BertConfig = json.loads(verify_file(model.source, model.files.config).read_text())
    weights = load_file(verify_file(model.source, model.files.weights))
    doubles = {name: values.astype(np.float64) for name, values in weights.items()}
    tokenizer = load_tokenizer(model)
    graph = build_graph(config, weights, model.pooling, "fp32")
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


def test_the_quantised_graph_is_near_the_plain_one_and_holds_its_layers_in_int8() -> None:
    weights = random_weights(TINY, 1)
    plain, quantised = (
        build_graph(TINY, weights, "mean", precision) for precision in ("fp32", "int8")
    )
    ids = [1, 7, 3, 49, 0, 7]
    assert float((run(plain, ids) @ run(quantised, ids).T)[0, 0]) >= 0.98
    products = [node.op_type for node in quantised.graph.node]
    # Per layer: query-key-value, attention output, widening, narrowing.
    assert products.count("DynamicQuantizeMatMul") == 4 * TINY["num_hidden_layers"]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_graph_is_valid_onnx(precision: str) -> None:
    onnx.checker.check_model(build_graph(TINY, random_weights(TINY, 1), "mean", precision))
