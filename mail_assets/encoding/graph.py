"""The encoder's ONNX graph, built from a BERT checkpoint's weights.

One text per run: without padding there is no attention mask, and the vector is a function of the
text alone, which dynamic quantisation (one activation scale per tensor) does not give to batches.
Where a change here changes the vectors, raise GRAPH_VERSION (local_model.py).

BERT: Devlin et al. 2018, arXiv:1810.04805. In int8 the dense layers are quantised; attention
products, norms and the embedding tables stay in float32.
"""

import numpy as np
import onnx

from mail_assets.encoding.bert_config import BertConfig, check_architecture
from mail_assets.encoding.graph_builder import GraphBuilder, Weights


def build_graph(
    config: BertConfig, weights: Weights, pooling: str, precision: str
) -> onnx.ModelProto:
    """The graph: `input_ids` int64 [1, L] to `embedding` float32 [1, hidden], of length 1.

    L is at most `max_position_embeddings`; all tokens are of type 0. Weights are named as in the
    state dict of a BertModel. ValueError for an architecture that this is not the arithmetic of.
    """
    check_architecture(config)
    graph = GraphBuilder(config, weights, quantised=precision == "int8")
    hidden = _embed(graph)
    for layer in range(config["num_hidden_layers"]):
        attended = _attend(graph, f"encoder.layer.{layer}.attention.", hidden)
        hidden = _feed_forward(graph, f"encoder.layer.{layer}.", attended)
    graph.node("LpNormalization", [_pool(graph, pooling, hidden)], "embedding", axis=-1, p=2)
    return graph.model()


def _embed(graph: GraphBuilder) -> str:
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


def _attend(graph: GraphBuilder, name: str, hidden: str) -> str:
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


def _feed_forward(graph: GraphBuilder, name: str, hidden: str) -> str:
    """Widen, GELU by erf (not its tanh approximation), then the projection back."""
    widen = f"{name}intermediate.dense"
    wide = graph.dense(hidden, *graph.linear(widen), widen)
    active = graph.node("Gelu", [wide], f"{name}gelu", approximate="none")
    return _project(graph, f"{name}output.", active, residual=hidden)


def _project(graph: GraphBuilder, name: str, tensor: str, residual: str) -> str:
    """Back to the hidden size, plus the residual, normalised."""
    output = graph.dense(tensor, *graph.linear(f"{name}dense"), f"{name}dense")
    total = graph.node("Add", [output, residual], f"{name}total")
    return graph.norm(total, f"{name}LayerNorm")


def _pool(graph: GraphBuilder, pooling: str, hidden: str) -> str:
    """[1, L, hidden] to [1, hidden]: the first token ([CLS]), or the mean of all."""
    if pooling == "cls":
        return graph.node("Gather", [hidden, graph.constant("first", 0)], "pooled", axis=1)
    return graph.node("ReduceMean", [hidden, graph.constant("tokens", [1])], "pooled", keepdims=0)
