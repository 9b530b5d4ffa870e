"""Encode texts at the precision `static`: a vector is the sum of its word pieces' vectors.

This ignores word order and context, but fills an index in minutes; search reranks its candidates
with the full model. Sums follow the order of the text, so the same text gives the same bits.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mail_assets.encoding.checkpoint import load_tokenizer, special_ids
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.models import STATIC, LocalModel, find_local_model
from mail_assets.text.tokens import encode_ids

BATCH = 256  # texts that are tokenized at once

Vectors = npt.NDArray[np.float32]


class StaticEncoder:
    """A loaded table; thread-safe. `table` is its prepared file."""

    precision = STATIC
    provider = "cpu"

    def __init__(self, model: LocalModel, table: Path) -> None:
        self.model = model
        self.fingerprint = model.fingerprint(STATIC)
        self.dimension = model.dimension
        self.tokenizer = load_tokenizer(model)
        self._before, self._after = special_ids(self.tokenizer)
        # Memory-mapped: a query touches few rows, and processes share them.
        self._table: Vectors = np.load(table, mmap_mode="r")

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Do not wait: a part of a month takes less time than waiting for a turn."""
        return nullcontext()

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension), in the order of the texts."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for place, ids in enumerate(encode_ids(batch, self.tokenizer), start):
                vectors[place] = self._pool(ids)
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimension,)."""
        (ids,) = encode_ids([text], self.tokenizer)
        return self._pool(ids)

    def _pool(self, ids: Sequence[int]) -> Vectors:
        # [CLS] and [SEP] have almost no weight, but give an empty text a direction.
        total = self._table[[*self._before, *ids, *self._after]].sum(axis=0)
        return np.asarray(total / np.linalg.norm(total), np.float32)


def open_static_encoder(name: str, cache: Path) -> StaticEncoder:
    """Open the static encoder of a local model; `cache` has its table."""
    model = find_local_model(name, cache)
    return StaticEncoder(model, prepare_model(model, STATIC, cache))
