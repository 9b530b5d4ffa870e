"""Smoothing: factors that keep outlier channels of a model out of its int8 activations.

A few channels of BERT's hidden states are ten times as large as the others, and one scale for all
of them leaves the others few of the 256 steps. Dividing such a channel by a factor, and multiplying
its row of the weights by the same, changes no product (SmoothQuant: Xiao et al. 2023,
arXiv:2211.10438). The factors come from the peaks of each channel on `calibration.txt`, which was
written for it: mail in several languages, patches, code, logs.

Everything here is computed in float64 and rounded coarsely, so all machines have the same factors.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import NamedTuple, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

#: Share of a channel's peak that moves into the weights; the rest stays in the activations.
STRENGTH = 0.8
#: Factors are powers of 2 ** (1 / STEPS).
STEPS = 4

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Weights = Mapping[str, Array]
#: Largest absolute value of each input channel of a dense layer, by the layer's name.
Peaks = Mapping[str, Doubles]


class Calibration(NamedTuple):
    """Measured on texts: peaks of the inputs that come from a norm, and the mean of the vectors."""

    peaks: Peaks
    mean: Doubles


class BertConfig(TypedDict):
    """The fields of a checkpoint's config.json that shape the graph."""

    model_type: str
    hidden_act: str
    position_embedding_type: NotRequired[str]
    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    layer_norm_eps: float


def read_calibration(tokenizer: Tokenizer, length: int) -> Iterator[list[int]]:
    """Yield the token ids of each text of calibration.txt, at most `length` of them."""
    content = resources.files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8")
    for text in content.split("\n%\n"):
        ids = tokenizer.encode(text).ids
        yield ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def calibrate(
    config: BertConfig, weights: Weights, pooling: str, texts: Iterable[list[int]]
) -> Calibration:
    """Compute the model on texts, given as ids, and return what was measured."""
    peaks: dict[str, Doubles] = {}
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
    ids = [*texts]
    lengths = [*map(len, ids)]
    ends = np.cumsum(lengths)[:-1]

    # All texts are the rows of one matrix; only attention keeps them apart.
    def norm(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Doubles, name: str) -> Doubles:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def attend(hidden: Doubles, name: str) -> Doubles:
        parts = (linear(hidden, f"{name}self.{part}") for part in ("query", "key", "value"))
        by_head = (part.reshape(len(part), heads, -1).swapaxes(0, 1) for part in parts)
        apart = (np.split(part, ends, axis=1) for part in by_head)
        contexts = []
        for query, key, value in zip(*apart, strict=True):
            scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
            shares = np.exp(scores - scores.max(axis=2, keepdims=True))
            contexts.append(shares / shares.sum(axis=2, keepdims=True) @ value)
        attended = np.concatenate(contexts, axis=1).swapaxes(0, 1).reshape(hidden.shape)
        return norm(hidden + linear(attended, f"{name}output.dense"), f"{name}output.LayerNorm")

    def feed_forward(hidden: Doubles, name: str) -> Doubles:
        wide = linear(hidden, f"{name}intermediate.dense")
        # GELU by tanh: exact enough for a peak, and NumPy has no erf.
        inner = np.sqrt(2 / np.pi) * wide * (1 + 0.044715 * wide * wide)
        active = 0.5 * wide * (1 + np.tanh(inner))
        return norm(hidden + linear(active, f"{name}output.dense"), f"{name}output.LayerNorm")

    table = {
        kind: weights[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    }
    words = table["word"][np.concatenate(ids)].astype(np.float64)
    places = table["position"][np.concatenate([*map(np.arange, lengths)])]
    hidden = norm(words + places + table["token_type"][0], "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}."
        peaks[f"{name}attention.joined"] = np.abs(hidden).max(axis=0)
        hidden = attend(hidden, f"{name}attention.")
        peaks[f"{name}intermediate.dense"] = np.abs(hidden).max(axis=0)
        hidden = feed_forward(hidden, name)
    pooled = [
        text.mean(axis=0) if pooling == "mean" else text[0] for text in np.split(hidden, ends)
    ]
    vectors = [vector / np.linalg.norm(vector) for vector in pooled]
    return Calibration(peaks, np.mean(vectors, axis=0))


def compute_factors(peaks: Doubles, weight: Array) -> Array:
    """Return the factor of each input channel of a weight [in, out], 1 in the geometric mean."""
    activations = np.maximum(peaks, 1e-5)
    rows = np.maximum(np.abs(weight).max(axis=1).astype(np.float64), 1e-5)
    exponents = STRENGTH * np.log2(activations) - (1 - STRENGTH) * np.log2(rows)
    steps = np.rint((exponents - exponents.mean()) * STEPS)
    return np.asarray(np.exp2(steps / STEPS), np.float32)
