"""Build the prepared file of a model from its verified files: an ONNX graph or a static table.

The graph is BERT (Devlin et al. 2018, arXiv:1810.04805) for one text at a time. Without padding it
needs no attention mask, and a vector depends on its text alone. In a batch it would not: dynamic
quantisation has one activation scale per tensor.

int8 quantises the dense layers; attention products, norms and positions stay in float32. Weights
are symmetric int8 with a scale per output channel. Activations are uint8 with a scale computed from
the text. These measures keep the vectors near float32, and equal on every processor:

- Inputs from a layer normalisation have a few channels that are ten times as large as the others,
  the same ones in all texts. Such a channel is divided by a factor, and its row of the weights is
  multiplied by it, which changes no product (SmoothQuant: Xiao et al. 2023, arXiv:2211.10438). The
  factors come from the peaks of each channel on `calibration.txt`, which was written for this
  purpose: mail in several languages, patches, code, logs. They are computed in float64 and rounded
  coarsely, so that all machines get the same factors.
- The input of the last dense layer has a few large tokens; there each token has its own scale.
- Word vectors are int8 with a scale each, which makes the file a quarter of the size.
- Processors without VNNI or dot-product instructions add pairs of products in 16 bits.
  quantise_weights ensures that no pair overflows, so all processors compute the same integers.

The table (precision `static`) has one vector for each word piece, made from the model's own input
embeddings: their mean is subtracted, and rare pieces weigh more (smooth inverse frequency: Arora,
Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings"). Frequencies are
estimated by Zipf's law from the position in the vocabulary, which WordPiece and SentencePiece sort
by frequency.

This module imports onnx, which takes as long as opening a prepared file, so import it only to
build. If a change here changes the vectors, raise GRAPH_VERSION or TABLE_VERSION (models.py).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from mail_assets.encoding.checkpoint import (
    Array,
    BertConfig,
    Weights,
    load_tokenizer,
    read_checkpoint,
)
from mail_assets.encoding.model_files import ModelFileError
from mail_assets.encoding.models import STATIC, LocalModel

# Opset 20, with IR version 9, is the first that has the operator Gelu.
OPSET, IR_VERSION = 20, 9

# Name of the word embeddings in the state dict of a BertModel.
WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
# SIF's `a`: a piece of this probability weighs half as much as one that never occurs. The paper
# uses 1e-3 to 1e-4 for whole words. There are fewer pieces, and BERT's first word has rank 1,996.
SMOOTHING = 1e-5

# Tokens used of each calibration text; more of them find no further outliers.
CALIBRATION_TOKENS = 64
# GELU is never below -0.17. ZERO is its zero point in uint8; STEPS are the steps above it.
GELU_MINIMUM = -0.17
GELU_ZERO = 32
GELU_STEPS = 255 - GELU_ZERO

Attribute = str | float | list[int]


def build_prepared(model: LocalModel, precision: str) -> bytes:
    """Return the content of the prepared file of a model at a precision."""
    config, weights = read_checkpoint(model)
    _check_profile(model, config)
    try:
        return _build(model, config, weights, precision)
    except KeyError as missing:
        raise ModelFileError(
            f"{model.files.weights.path} of model {model.name} has no tensor {missing}, "
            "which its config.json requires: correct models.py"
        ) from missing


def _build(model: LocalModel, config: BertConfig, weights: Weights, precision: str) -> bytes:
    if precision == STATIC:
        return serialise_table(build_table(weights[WORD_EMBEDDINGS]))
    measured = None
    if precision == "int8" or model.centred:
        length = min(CALIBRATION_TOKENS, model.max_tokens)
        texts = read_calibration(load_tokenizer(model), length)
        measured = calibrate(config, weights, model.pooling, texts)
    quantise = measured if precision == "int8" else None
    centre = measured.mean if measured and model.centred else None
    graph = build_graph(config, weights, model.pooling, quantise, centre)
    return bytes(graph.SerializeToString(deterministic=True))


def _check_profile(model: LocalModel, config: BertConfig) -> None:
    if config["hidden_size"] != model.dimension:
        raise ModelFileError(
            f"model {model.name} says dimension {model.dimension}, its config.json "
            f"hidden_size {config['hidden_size']}: correct models.py"
        )
    if config["max_position_embeddings"] < model.max_tokens:
        raise ModelFileError(
            f"model {model.name} says max_tokens {model.max_tokens}, its config.json "
            f"max_position_embeddings {config['max_position_embeddings']}: correct models.py"
        )


def check_architecture(config: BertConfig) -> None:
    """Raise ValueError unless the model is BERT with GELU and absolute positions."""
    found = (
        config["model_type"],
        config["hidden_act"],
        config.get("position_embedding_type", "absolute"),
    )
    if found != ("bert", "gelu", "absolute"):
        raise ValueError(
            "config.json: need model_type 'bert', hidden_act 'gelu' and position_embedding_type "
            f"'absolute', found {found}. Choose a model of that architecture"
        )


def build_graph(
    config: BertConfig,
    weights: Weights,
    pooling: str,
    measured: Calibration | None = None,
    centre: Doubles | None = None,
) -> onnx.ModelProto:
    """Return the graph from `input_ids` int64 [1, L] to `embedding` float32 [1, hidden], length 1.

    L is at most `max_position_embeddings`; all tokens are of type 0. Weights are named as in the
    state dict of a BertModel. With a calibration the graph is int8, else float32. `centre` is
    subtracted from the unit vectors, which are then normalised again.
    """
    check_architecture(config)
    graph = GraphBuilder(config, weights, measured)
    hidden = _embed(graph)
    for layer in range(config["num_hidden_layers"]):
        attended = _attend(graph, f"encoder.layer.{layer}.attention.", hidden)
        hidden = _feed_forward(graph, f"encoder.layer.{layer}.", attended)
    vector = _pool(graph, pooling, hidden)
    if centre is not None:
        mean = graph.constant("centre", centre.astype(np.float32))
        unit = graph.node("LpNormalization", [vector], "uncentred", axis=-1, p=2)
        vector = graph.node("Sub", [unit, mean], "centred")
    graph.node("LpNormalization", [vector], "embedding", axis=-1, p=2)
    return graph.model()


def _embed(graph: GraphBuilder) -> str:
    table = {
        kind: graph.weights[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    }
    start = graph.constant("start", [0])
    length = graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    places = graph.constant("places", table["position"] + table["token_type"][0])
    place = graph.node("Slice", [places, start, length], "place")
    word = _look_up(graph, table["word"])
    return graph.norm(graph.node("Add", [word, place], "embedded"), "embeddings.LayerNorm")


def _look_up(graph: GraphBuilder, words: Array) -> str:
    if not graph.quantised:
        return graph.node("Gather", [graph.constant("words", words), "input_ids"], "word")
    largest = np.abs(words).max(axis=1, keepdims=True)
    scales = np.maximum(largest / 127, np.finfo(np.float32).tiny)
    values = np.rint(words / scales).astype(np.int8)
    small, scale = (
        graph.node("Gather", [graph.constant(name, table), "input_ids"], f"{name}.row")
        for name, table in (("words", values), ("words.scale", scales))
    )
    wide = graph.node("Cast", [small], "words.float", to=TensorProto.FLOAT)
    return graph.node("Mul", [wide, scale], "word")


def _attend(graph: GraphBuilder, name: str, hidden: str) -> str:
    size, heads = graph.config["hidden_size"], graph.config["num_attention_heads"]
    (query, query_bias), (key, key_bias), (value, value_bias) = (
        graph.linear(f"{name}self.{part}") for part in ("query", "key", "value")
    )
    # The softmax's 1 / sqrt(head size) is multiplied into the query's weights. This saves a node,
    # and a factor on a whole column does not change how the column is quantised.
    factor = np.float32((size // heads) ** -0.5)
    weight = np.concatenate([query * factor, key, value], axis=1)
    bias = np.concatenate([query_bias * factor, key_bias, value_bias])
    joined = graph.dense(hidden, weight, bias, f"{name}joined")
    parts = graph.split(joined, [f"{name}query", f"{name}key", f"{name}value"])
    attended = _mix_tokens(graph, name, parts)
    return _project(graph, f"{name}output.", attended, residual=hidden)


def _mix_tokens(graph: GraphBuilder, name: str, parts: list[str]) -> str:
    size, heads = graph.config["hidden_size"], graph.config["num_attention_heads"]
    if graph.quantised:  # faster, but only the CPU provider has the operator
        options: dict[str, Attribute] = {"num_heads": heads, "scale": 1.0}
        return graph.microsoft("MultiHeadAttention", parts, f"{name}attended", **options)
    queries, keys, values = parts
    split = graph.constant(f"{name}split", [1, -1, heads, size // heads])

    def by_head(tensor: str, perm: list[int]) -> str:
        apart = graph.node("Reshape", [tensor, split], f"{tensor}.split")
        return graph.node("Transpose", [apart], f"{tensor}.heads", perm=perm)

    scores = graph.node(
        "MatMul", [by_head(queries, [0, 2, 1, 3]), by_head(keys, [0, 2, 3, 1])], f"{name}scores"
    )
    shares = graph.node("Softmax", [scores], f"{name}shares", axis=-1)
    context = graph.node("MatMul", [shares, by_head(values, [0, 2, 1, 3])], f"{name}context")
    together = graph.node("Transpose", [context], f"{name}together", perm=[0, 2, 1, 3])
    flat = graph.constant(f"{name}flat", [1, -1, size])
    return graph.node("Reshape", [together, flat], f"{name}attended")


def _feed_forward(graph: GraphBuilder, name: str, hidden: str) -> str:
    widen = f"{name}intermediate.dense"
    wide = graph.dense(hidden, *graph.linear(widen), widen)
    # exact GELU (erf), not the tanh approximation
    active = graph.node("Gelu", [wide], f"{name}gelu", approximate="none")
    return _project(graph, f"{name}output.", active, residual=hidden, of_gelu=True)


def _project(
    graph: GraphBuilder, name: str, tensor: str, residual: str, of_gelu: bool = False
) -> str:
    dense = graph.dense_of_gelu if of_gelu and graph.quantised else graph.dense
    output = dense(tensor, *graph.linear(f"{name}dense"), f"{name}dense")
    total = graph.node("Add", [output, residual], f"{name}total")
    return graph.norm(total, f"{name}LayerNorm")


def _pool(graph: GraphBuilder, pooling: str, hidden: str) -> str:
    if pooling == "cls":
        return graph.node("Gather", [hidden, graph.constant("first", 0)], "pooled", axis=1)
    return graph.node("ReduceMean", [hidden, graph.constant("tokens", [1])], "pooled", keepdims=0)


class GraphBuilder:
    """Collects the nodes and constants of a graph; methods return a tensor's name."""

    def __init__(self, config: BertConfig, weights: Weights, measured: Calibration | None) -> None:
        self.config = config
        self.weights = weights
        self.quantised = measured is not None
        self._peaks = measured.peaks if measured else {}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        """Add a constant tensor."""
        self._constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, **attributes: Attribute) -> str:
        """Add an operator with one output, the tensor `name`."""
        self._add(operator, inputs, [name], "", attributes)
        return name

    def microsoft(
        self, operator: str, inputs: list[str], name: str, **attributes: Attribute
    ) -> str:
        """Add an operator of ONNX Runtime that is not in ONNX."""
        self._add(operator, inputs, [name], "com.microsoft", attributes)
        return name

    def split(self, tensor: str, names: list[str]) -> list[str]:
        """Split the last axis into equal parts."""
        self._add("Split", [tensor], names, "", {"axis": -1, "num_outputs": len(names)})
        return names

    def _add(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        domain: str,
        attributes: Mapping[str, Attribute],
    ) -> None:
        node = helper.make_node(operator, inputs, outputs, name=outputs[0], domain=domain)
        node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())
        self._nodes.append(node)

    def linear(self, name: str) -> tuple[Array, Array]:
        """Return weight [in, out] and bias [out] of a torch Linear, which stores [out, in]."""
        return self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"]

    def dense(self, tensor: str, weight: Array, bias: Array, name: str) -> str:
        """Add tensor x weight + bias, in int8 if the graph is quantised."""
        offset = self.constant(f"{name}.bias", bias)
        if not self.quantised:
            factor = self.constant(f"{name}.weight", weight)
            product = self.node("MatMul", [tensor, factor], f"{name}.x")
            return self.node("Add", [product, offset], name)
        if name in self._peaks:
            factors = compute_factors(self._peaks[name], weight)
            inverse = self.constant(f"{name}.smoothing", 1 / factors)
            tensor = self.node("Mul", [tensor, inverse], f"{name}.smoothed")
            weight = weight * factors[:, None]
        # This one node replaces DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Mul, Add.
        inputs = [tensor, *self._quantised_weight(weight, name), offset]
        return self.microsoft("DynamicQuantizeMatMul", inputs, name)

    def dense_of_gelu(self, tensor: str, weight: Array, bias: Array, name: str) -> str:
        """Add tensor x weight + bias in int8, with a scale for each token of GELU's output."""
        # If a token's largest value is small, its scale is the one where -0.17 is the lowest step.
        least = np.float32(-GELU_MINIMUM / GELU_ZERO)
        last, flat, column = (
            self.constant(f"{name}.{key}", value)
            for key, value in (("last", [-1]), ("flat", [-1]), ("column", [-1, 1]))
        )
        largest = self.node("ReduceMax", [tensor, last], f"{name}.largest", keepdims=0)
        step = self.constant(f"{name}.step", np.float32(1 / GELU_STEPS))
        steps = self.node(
            "Mul", [self.node("Reshape", [largest, flat], f"{name}.m"), step], f"{name}.n"
        )
        scales = self.node("Max", [steps, self.constant(f"{name}.least", least)], f"{name}.scales")
        zero = self.constant(f"{name}.zero_of_gelu", np.uint8(GELU_ZERO))
        length = self.node("Shape", [scales], f"{name}.length")
        zeros = self.node("Expand", [zero, length], f"{name}.zeros")
        values = self.node("QuantizeLinear", [tensor, scales, zeros], f"{name}.values", axis=1)
        one = self.constant(f"{name}.one", np.float32(1))
        factor, scale, weight_zero = self._quantised_weight(weight, name)
        inputs = [values, factor, one, scale, zero, weight_zero]
        product = self.microsoft("MatMulIntegerToFloat", inputs, f"{name}.product")
        by_token = self.node("Reshape", [scales, column], f"{name}.by_token")
        scaled = self.node("Mul", [product, by_token], f"{name}.scaled")
        return self.node("Add", [scaled, self.constant(f"{name}.bias", bias)], name)

    def _quantised_weight(self, weight: Array, name: str) -> list[str]:
        values, scales = quantise_weights(weight)
        return [
            self.constant(f"{name}.weight", values),
            self.constant(f"{name}.scale", scales),
            self.constant(f"{name}.zero", np.zeros_like(scales, np.int8)),
        ]

    def norm(self, tensor: str, name: str) -> str:
        """Add a layer normalisation with the weights of that name."""
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        epsilon = self.config["layer_norm_eps"]
        return self.node("LayerNormalization", [tensor, scale, bias], name, epsilon=epsilon)

    def model(self) -> onnx.ModelProto:
        """Return the finished graph."""
        tensor = helper.make_tensor_value_info
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [tensor("input_ids", TensorProto.INT64, [1, "length"])],
            [tensor("embedding", TensorProto.FLOAT, [1, self.config["hidden_size"]])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def quantise_weights(weight: Array) -> tuple[npt.NDArray[np.int8], Array]:
    """Return int8 values [in, out] and scales [out] whose product approximates the weight.

    Values of inputs 2i and 2i + 1 with the same sign add up to at most 128, so that two products
    with uint8 fit into 16 bits: 255 x 128 = 32,640.
    """
    even = np.pad(weight, ((0, len(weight) % 2), (0, 0))).reshape(-1, 2, weight.shape[1])
    pairs = [np.maximum(sign * even, 0).sum(axis=1).max(axis=0) for sign in (1, -1)]
    # A column of zeros may have any scale; the smallest normal number avoids 0 / 0.
    largest = np.maximum(np.maximum(*pairs), 127 * np.finfo(np.float32).tiny)
    # 127 steps, not 128: rounding adds up to half a step to each of the two.
    scales = (largest / 127).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def build_table(embeddings: Array) -> Array:
    """Return the table of a vocabulary's input embeddings, both of shape (pieces, dimension)."""
    ranks = np.arange(1, len(embeddings) + 1)
    probabilities = 1 / (ranks * np.sum(1 / ranks))
    weights = SMOOTHING / (SMOOTHING + probabilities)
    exact = embeddings.astype(np.float64)
    return np.asarray((exact - exact.mean(axis=0)) * weights[:, None], np.float32)


def serialise_table(table: Array) -> bytes:
    """Return the table in NumPy's file format."""
    buffer = io.BytesIO()
    np.save(buffer, table)
    return buffer.getvalue()


#: Share of a channel's peak (in log scale) that moves into the weights (SmoothQuant's alpha).
STRENGTH = 0.8
#: Factors are powers of 2 ** (1 / STEPS).
STEPS = 4

Doubles = npt.NDArray[np.float64]
#: Largest absolute value of each input channel of a dense layer, by the layer's name.
Peaks = Mapping[str, Doubles]


class Calibration(NamedTuple):
    """Measurements on texts: peaks of the inputs that come from a norm, and the mean vector."""

    peaks: Peaks
    mean: Doubles


def read_calibration(tokenizer: Tokenizer, length: int) -> Iterator[list[int]]:
    """Yield the token ids of each text of calibration.txt, at most `length` of them."""
    content = resources.files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8")
    for text in content.split("\n%\n"):
        ids = tokenizer.encode(text).ids
        yield ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def calibrate(
    config: BertConfig, weights: Weights, pooling: str, texts: Iterable[list[int]]
) -> Calibration:
    """Run the model on texts, given as token ids, and return the measurements."""
    peaks: dict[str, Doubles] = {}
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
    ids = [*texts]
    lengths = [*map(len, ids)]
    ends = np.cumsum(lengths)[:-1]

    # The tokens of all texts are rows of one matrix; only attention separates the texts.
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
        # GELU by tanh, which is exact enough for a peak; NumPy has no erf.
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
    """Return a factor for each input channel of a weight [in, out]; their geometric mean is 1."""
    activations = np.maximum(peaks, 1e-5)
    rows = np.maximum(np.abs(weight).max(axis=1).astype(np.float64), 1e-5)
    exponents = STRENGTH * np.log2(activations) - (1 - STRENGTH) * np.log2(rows)
    steps = np.rint((exponents - exponents.mean()) * STEPS)
    return np.asarray(np.exp2(steps / STEPS), np.float32)
