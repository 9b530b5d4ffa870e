"""BERT in float64, written from the paper, and random weights for it."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from mail_assets.encoding.checkpoint import BertConfig
from mail_assets.encoding.model_build import build_graph, calibrate

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
    """Return the vector of a text, computed as in the paper."""
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


def random_weights(config: BertConfig, seed: int, spread: float = 0.5) -> dict[str, Floats]:
    """A BertModel's state dict, without the pooler."""
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

    return {name: random.normal(0, spread, shape).astype(np.float32) for name, shape in shapes()}


def build(
    config: BertConfig, weights: Mapping[str, Floats], pooling: str, precision: str
) -> onnx.ModelProto:
    """The graph at a precision; int8 is smoothed by random texts of WORDS pieces."""
    texts = np.random.default_rng(0).integers(0, WORDS, (4, 12)).tolist()
    measured = calibrate(config, weights, pooling, texts) if precision == "int8" else None
    return build_graph(config, weights, pooling, measured)


def encode(model: onnx.ModelProto, *texts: list[int]) -> Floats:
    """The vectors of texts by ONNX Runtime; one vector for one text."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = [session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0] for ids in texts]
    return np.array(rows) if len(rows) > 1 else np.asarray(rows[0])
