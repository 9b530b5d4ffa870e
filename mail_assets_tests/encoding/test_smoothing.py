"""int8 is near float32 in spite of outliers, and its sums are exact on every processor."""

import hashlib
import json
from importlib import resources

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import load_file

from mail_assets.encoding.checkpoint import BertConfig, load_tokenizer
from mail_assets.encoding.model_build import (
    build_graph,
    calibrate,
    compute_factors,
    quantise_weights,
    read_calibration,
)
from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import ALL_MINILM_L6_V2, GRAPH_VERSION
from mail_assets_tests.encoding.bert import TINY, Floats, build, encode, random_weights, reference
from mail_assets_tests.sample_corpus import REPOSITORY

WIDE: BertConfig = {**TINY, "hidden_size": 96, "num_attention_heads": 4}
IDS = [[1, 7, 3, 49, 0, 7], [*range(20)], [48] * 9, [2]]


def outlying(weights: dict[str, Floats], norms: float, tokens: float) -> dict[str, Floats]:
    """Weights with two channels of each norm, and one neuron that one token alone excites."""
    found = {name: values.copy() for name, values in weights.items()}
    for name, values in found.items():
        if name.endswith("LayerNorm.weight"):
            values[[5, 11]] *= norms
        if name.endswith("intermediate.dense.weight"):
            values[17] *= tokens
    return found


@pytest.mark.parametrize(("norms", "tokens"), [(1, 1), (20, 1), (1, 20), (20, 20)])
def test_int8_is_near_fp32_with_outliers(norms: float, tokens: float) -> None:
    weights = outlying(random_weights(WIDE, 3, spread=0.2), norms, tokens)
    graph = build(WIDE, weights, "mean", "int8")
    for ids in IDS:
        assert float(encode(graph, ids) @ reference(WIDE, weights, "mean", ids)) > 0.998


def overflowing_pairs(values: npt.NDArray[np.int8]) -> int:
    """Count pairs of inputs 2i, 2i + 1 whose products with any two bytes may leave 16 bits."""
    pairs = np.pad(values.astype(int), ((0, len(values) % 2), (0, 0)))
    pairs = pairs.reshape(-1, 2, values.shape[1])
    highest = 255 * np.maximum(pairs, 0).sum(axis=1)
    lowest = 255 * np.minimum(pairs, 0).sum(axis=1)
    return int(((highest > 2**15 - 1) | (lowest < -(2**15))).sum())


def int8_weights(graph: onnx.ModelProto) -> list[npt.NDArray[np.int8]]:
    values = [numpy_helper.to_array(tensor) for tensor in graph.graph.initializer]
    names = [tensor.name for tensor in graph.graph.initializer]
    return [
        array
        for name, array in zip(names, values, strict=True)
        if array.dtype == np.int8 and array.ndim == 2 and name != "words"
    ]


@pytest.mark.parametrize("shape", [(1, 3), (2, 5), (7, 9), (384, 64)])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e4])
def test_no_pair_of_products_leaves_16_bits(shape: tuple[int, int], spread: float) -> None:
    weight = np.random.default_rng(0).normal(0, spread, shape).astype(np.float32)
    weight[: shape[0] // 2 * 2] = np.repeat(weight[: shape[0] // 2], 2, axis=0)  # worst: equal
    assert overflowing_pairs(quantise_weights(weight)[0]) == 0


def test_published_model_in_int8_is_exact_and_near_fp32() -> None:
    model = ALL_MINILM_L6_V2
    config: BertConfig = json.loads(verify_file(model.source, model.files.config).read_text())
    weights = load_file(verify_file(model.source, model.files.weights))
    tokenizer = load_tokenizer(model)
    measured = calibrate(config, weights, "mean", read_calibration(tokenizer, 64))
    exact, near = (build_graph(config, weights, "mean", p) for p in (None, measured))
    matrices = int8_weights(near)
    assert len(matrices) == 4 * config["num_hidden_layers"]
    assert sum(map(overflowing_pairs, matrices)) == 0
    mails = (REPOSITORY / "samples" / "harbor-dev" / "harbor-dev.2024-03.mbox").read_text("latin-1")
    texts = [tokenizer.encode(mails[at : at + 500]).ids for at in range(0, 30_000, 1_500)]
    cosines = (encode(exact, *texts) * encode(near, *texts)).sum(axis=1)
    assert np.mean(cosines) > 0.998
    assert cosines.min() > 0.995


def test_factors_change_no_product_and_even_out_the_peaks() -> None:
    random = np.random.default_rng(1)
    weight = random.normal(0, 0.1, (32, 8)).astype(np.float32)
    rows = random.normal(0, 1, (50, 32)).astype(np.float32)
    rows[:, 4] *= 30
    factors = compute_factors(np.abs(rows).max(axis=0).astype(np.float64), weight)
    smooth, moved = rows / factors, weight * factors[:, None]
    np.testing.assert_allclose(smooth @ moved, rows @ weight, atol=1e-4)
    assert np.abs(smooth).max() < np.abs(rows).max() / 5
    assert compute_factors(np.zeros(32), np.zeros((32, 8), np.float32)).tolist() == [1.0] * 32


def test_factors_outlast_the_rounding_of_another_machine() -> None:
    weights, texts = random_weights(WIDE, 3, spread=0.2), IDS[:2]
    peaks = calibrate(WIDE, weights, "mean", texts).peaks
    for name, values in peaks.items():
        weight = random_weights(WIDE, 4)["encoder.layer.0.intermediate.dense.weight"].T
        moved = values * (1 + np.random.default_rng(2).uniform(-1e-12, 1e-12, values.shape))
        assert (compute_factors(values, weight) == compute_factors(moved, weight)).all(), name


def test_calibration_text_belongs_to_the_graph_version() -> None:
    content = resources.files("mail_assets.encoding").joinpath("calibration.txt").read_bytes()
    # Another text makes other vectors: raise GRAPH_VERSION with it.
    assert (GRAPH_VERSION, hashlib.sha256(content).hexdigest()[:16]) == ("2", "3d6817f693c7b50d")


def test_texts_of_the_calibration_are_cut_to_the_length() -> None:
    tokenizer = load_tokenizer(ALL_MINILM_L6_V2)
    texts = [*read_calibration(tokenizer, 20)]
    assert len(texts) > 20
    assert max(map(len, texts)) == 20
    first, last = tokenizer.encode("").ids
    assert all(ids[0] == first and ids[-1] == last for ids in texts)
