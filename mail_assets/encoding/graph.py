"""The encoder's ONNX graph, built from a BERT checkpoint's weights.

One text per run: without padding there is no attention mask, and the vector is a function of the
text alone, which dynamic quantisation (one activation scale per tensor) does not give to batches.
What lives here: arithmetic only; where it changes the vectors, raise GRAPH_VERSION (profiles.py).
What does not: files (model.py), the cache (prepare.py).

BERT: Devlin et al. 2018, arXiv:1810.04805. Quantisation: ONNX Runtime's dynamic scheme, uint8
activations per tensor, int8 weights per output channel, symmetric; attention products, norms and
the embedding tables stay in float32.
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

# Gelu is an operator of its own since opset 20, which came with IR version 9.
OPSET, IR_VERSION = 20, 9

Array = npt.NDArray[np.float32]
Weights = Mapping[str, Array]
Attribute = str | float | list[int]


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


def build(config: BertConfig, weights: Weights, pooling: str, precision: str) -> onnx.ModelProto:
    """The graph: `input_ids` int64 [1, L] to `embedding` float32 [1, hidden], of length 1.

    L is at most `max_position_embeddings`; all tokens are of type 0. Weights are named as in the
    state dict of a BertModel. ValueError for an architecture that this is not the arithmetic of.
    """
    _check_architecture(config)
    graph = _Graph(config, weights, quantised=precision == "int8")
    hidden = _embed(graph)
    for layer in range(config["num_hidden_layers"]):
        attended = _attend(graph, f"encoder.layer.{layer}.attention.", hidden)
        hidden = _feed_forward(graph, f"encoder.layer.{layer}.", attended)
    graph.node("LpNormalization", [_pool(graph, pooling, hidden)], "embedding", axis=-1, p=2)
    return graph.model()


def quantise(weight: Array) -> tuple[npt.NDArray[np.int8], Array]:
    """Symmetric int8 per column: weight [in, out] is about values [in, out] x scales [out].

    All 8 bits: x86 processors without VNNI saturate on rare sums of two products, so their
    vectors differ a little. 7 bits would not, but took mean cosine to float32 from 0.992 to 0.990.
    """
    # A column of zeros may have any scale; the smallest normal number keeps 0 / 0 out.
    largest = np.maximum(np.abs(weight).max(axis=0), 127 * np.finfo(np.float32).tiny)
    scales = (largest / 127).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


class _Graph:
    """Nodes and constants in the order in which they are made; methods return a tensor's name."""

    def __init__(self, config: BertConfig, weights: Weights, quantised: bool) -> None:
        self.config = config
        self.weights = weights
        self._quantised = quantised
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def node(
        self,
        operator: str,
        inputs: list[str],
        name: str,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        self._add(operator, inputs, [name], domain, attributes)
        return name

    def split(self, tensor: str, names: list[str]) -> list[str]:
        """Equal parts of the last axis."""
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
        """Weight [in, out] and bias [out] of a torch Linear, which stores [out, in]."""
        return self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"]

    def dense(self, tensor: str, weight: Array, bias: Array, name: str) -> str:
        """Tensor x weight + bias; in int8 where the graph is quantised."""
        offset = self.constant(f"{name}.bias", bias)
        if not self._quantised:
            factor = self.constant(f"{name}.weight", weight)
            return self.node(
                "Add", [self.node("MatMul", [tensor, factor], f"{name}.x"), offset], name
            )
        values, scales = quantise(weight)
        factor = self.constant(f"{name}.weight", values)
        scale = self.constant(f"{name}.scale", scales)
        zero = self.constant(f"{name}.zero", np.zeros_like(scales, np.int8))
        # One node of ONNX Runtime's for DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Mul, Add.
        inputs = [tensor, factor, scale, zero, offset]
        return self.node("DynamicQuantizeMatMul", inputs, name, domain="com.microsoft")

    def norm(self, tensor: str, name: str) -> str:
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        epsilon = self.config["layer_norm_eps"]
        return self.node("LayerNormalization", [tensor, scale, bias], name, epsilon=epsilon)

    def model(self) -> onnx.ModelProto:
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


def _embed(graph: _Graph) -> str:
    """Word + position + token type 0, normalised."""
    table = {
        kind: graph.weights[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    }
    start = graph.constant("start", [0])
    length = graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    places = graph.constant("places", table["position"] + table["token_type"][0])
    place = graph.node("Slice", [places, start, length], "place")
    words = graph.constant("words", table["word"])
    word = graph.node("Gather", [words, "input_ids"], "word")
    return graph.norm(graph.node("Add", [word, place], "embedded"), "embeddings.LayerNorm")


def _attend(graph: _Graph, name: str, hidden: str) -> str:
    """Multi-head self-attention, then the projection back."""
    size, heads = graph.config["hidden_size"], graph.config["num_attention_heads"]
    (query, query_bias), (key, key_bias), (value, value_bias) = (
        graph.linear(f"{name}self.{part}") for part in ("query", "key", "value")
    )
    # The softmax's 1 / sqrt(head size) goes into the query's weights: one node less, and a factor
    # on a whole column does not change how the column is quantised.
    factor = np.float32((size // heads) ** -0.5)
    weight = np.concatenate([query * factor, key, value], axis=1)
    bias = np.concatenate([query_bias * factor, key_bias, value_bias])
    joined = graph.dense(hidden, weight, bias, f"{name}joined")
    queries, keys, values = graph.split(joined, [f"{name}query", f"{name}key", f"{name}value"])

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
    attended = graph.node("Reshape", [together, flat], f"{name}attended")
    return _project(graph, f"{name}output.", attended, residual=hidden)


def _feed_forward(graph: _Graph, name: str, hidden: str) -> str:
    """Widen, GELU by erf (not its tanh approximation), then the projection back."""
    widen = f"{name}intermediate.dense"
    wide = graph.dense(hidden, *graph.linear(widen), widen)
    active = graph.node("Gelu", [wide], f"{name}gelu", approximate="none")
    return _project(graph, f"{name}output.", active, residual=hidden)


def _project(graph: _Graph, name: str, tensor: str, residual: str) -> str:
    """Back to the hidden size, plus the residual, normalised."""
    output = graph.dense(tensor, *graph.linear(f"{name}dense"), f"{name}dense")
    total = graph.node("Add", [output, residual], f"{name}total")
    return graph.norm(total, f"{name}LayerNorm")


def _pool(graph: _Graph, pooling: str, hidden: str) -> str:
    """[1, L, hidden] to [1, hidden]: the first token ([CLS]), or the mean of all."""
    if pooling == "cls":
        return graph.node("Gather", [hidden, graph.constant("first", 0)], "pooled", axis=1)
    return graph.node("ReduceMean", [hidden, graph.constant("tokens", [1])], "pooled", keepdims=0)


def _check_architecture(config: BertConfig) -> None:
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
