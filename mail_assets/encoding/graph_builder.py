"""Nodes and constants of an ONNX graph, in float32 or with int8 weights.

Quantisation is ONNX Runtime's dynamic scheme: uint8 activations per tensor, int8 weights per
output channel, symmetric. Only dense layers are quantised.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from mail_assets.encoding.bert_config import BertConfig

# Gelu is an operator of its own since opset 20, which came with IR version 9.
OPSET, IR_VERSION = 20, 9

Array = npt.NDArray[np.float32]
Weights = Mapping[str, Array]
Attribute = str | float | list[int]


def quantise_weights(weight: Array) -> tuple[npt.NDArray[np.int8], Array]:
    """Symmetric int8 per column: weight [in, out] is about values [in, out] x scales [out].

    All 8 bits: x86 processors without VNNI saturate on rare sums of two products, so their
    vectors differ a little. 7 bits would not, but took mean cosine to float32 from 0.992 to 0.990.
    """
    # A column of zeros may have any scale; the smallest normal number keeps 0 / 0 out.
    largest = np.maximum(np.abs(weight).max(axis=0), 127 * np.finfo(np.float32).tiny)
    scales = (largest / 127).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


class GraphBuilder:
    """Nodes and constants in the order in which they are made; methods return a tensor's name."""

    def __init__(self, config: BertConfig, weights: Weights, quantised: bool) -> None:
        self.config = config
        self.weights = weights
        self._quantised = quantised
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        """Add a constant tensor."""
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
        """Add an operator with one output, the tensor `name`."""
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
        values, scales = quantise_weights(weight)
        factor = self.constant(f"{name}.weight", values)
        scale = self.constant(f"{name}.scale", scales)
        zero = self.constant(f"{name}.zero", np.zeros_like(scales, np.int8))
        # One node of ONNX Runtime's for DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Mul, Add.
        inputs = [tensor, factor, scale, zero, offset]
        return self.node("DynamicQuantizeMatMul", inputs, name, domain="com.microsoft")

    def norm(self, tensor: str, name: str) -> str:
        """Layer normalisation with the weights of that name."""
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        epsilon = self.config["layer_norm_eps"]
        return self.node("LayerNormalization", [tensor, scale, bias], name, epsilon=epsilon)

    def model(self) -> onnx.ModelProto:
        """The graph from `input_ids` int64 [1, length] to `embedding` float32 [1, hidden]."""
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
