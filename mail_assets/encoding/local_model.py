"""A model that computes on this machine: what must be known to encode with it.

No file is opened here and nothing is computed: settings are checked against this module. The
known models are in `model_catalog`.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from mail_assets.encoding.model_files import ModelFiles, ModelSource
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import CHUNKER_VERSION

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
