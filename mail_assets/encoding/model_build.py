"""The bytes of a prepared file, made from a model's verified files: an ONNX graph or a table."""

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from mail_assets.encoding.bert_config import BertConfig
from mail_assets.encoding.graph import build_graph
from mail_assets.encoding.local_model import STATIC, LocalModel
from mail_assets.encoding.model_files import ModelFileError, verify_file
from mail_assets.encoding.static_table import TENSOR, build_table, serialise_table


def build_prepared(model: LocalModel, precision: str) -> bytes:
    """The content of the prepared file of a model at a precision.

    Raises:
        ModelFileError: a file is missing or altered, or the profile contradicts it.
    """
    config: BertConfig = json.loads(
        verify_file(model.source, model.files.config).read_text(encoding="utf-8")
    )
    _check_profile(model, config)
    tensors = load_file(verify_file(model.source, model.files.weights))
    weights = {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
    try:
        return _build(model, config, weights, precision)
    except KeyError as missing:
        raise ModelFileError(
            f"{model.files.weights.path} of model {model.name} has no tensor {missing}, "
            "which its config.json asks for: correct model_catalog.py"
        ) from missing


def _build(
    model: LocalModel,
    config: BertConfig,
    weights: Mapping[str, npt.NDArray[np.float32]],
    precision: str,
) -> bytes:
    if precision == STATIC:
        return serialise_table(build_table(weights[TENSOR]))
    graph = build_graph(config, weights, model.pooling, precision)
    return bytes(graph.SerializeToString(deterministic=True))


def _check_profile(model: LocalModel, config: BertConfig) -> None:
    """Refuse a profile that the model's own configuration contradicts."""
    if config["hidden_size"] != model.dimension:
        raise ModelFileError(
            f"model {model.name} says dimension {model.dimension}, its config.json "
            f"hidden_size {config['hidden_size']}: correct model_catalog.py"
        )
    if config["max_position_embeddings"] < model.max_tokens:
        raise ModelFileError(
            f"model {model.name} says max_tokens {model.max_tokens}, its config.json "
            f"max_position_embeddings {config['max_position_embeddings']}: correct model_catalog.py"
        )
