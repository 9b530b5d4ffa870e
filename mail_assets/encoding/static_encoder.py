"""The encoder of the precision `static`: a text's vector is the sum of its pieces' vectors.

Nothing is computed but sums, in the order of the text, so a vector depends on its text alone, to
the bit. It knows no order of words and no context: it fills an index in minutes, and search reranks
what it finds with the model itself (search/lazy_lane.py).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mail_assets.encoding.model_build import prepare_model
from mail_assets.encoding.models import STATIC, LocalModel, find_local_model
from mail_assets.encoding.tokenizer import load_tokenizer, special_ids
from mail_assets.text.tokens import encode_ids

#: Texts that are tokenized at once.
BATCH = 256

Vectors = npt.NDArray[np.float32]


class StaticEncoder:
    """A loaded table; safe to share between threads. `table` is its prepared file."""

    precision = STATIC
    provider = "cpu"

    def __init__(self, model: LocalModel, table: Path) -> None:
        self.model = model
        self.fingerprint = model.fingerprint(STATIC)
        self.dimension = model.dimension
        self.tokenizer = load_tokenizer(model)
        self._before, self._behind = special_ids(self.tokenizer)
        # Mapped: a query touches some rows only, and processes share them.
        self._table: Vectors = np.load(table, mmap_mode="r")

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait for nobody: a part of a month is done before a turn would come."""
        return nullcontext()

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order of the texts.

        `progress` is called in this thread with the number of texts done so far; an exception
        from it stops the work.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for place, ids in enumerate(encode_ids(batch, self.tokenizer), start):
                vectors[place] = self._pool(ids)
            if progress is not None:
                progress(start + len(batch))
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,): queries and documents are alike here."""
        (ids,) = encode_ids([text], self.tokenizer)
        return self._pool(ids)

    def _pool(self, ids: Sequence[int]) -> Vectors:
        """The direction of the sum of some rows: [CLS] and [SEP], which weigh next to nothing,
        are among them, so that an empty text has one too.
        """
        total = self._table[[*self._before, *ids, *self._behind]].sum(axis=0)
        return np.asarray(total / np.linalg.norm(total), np.float32)


def open_static_encoder(name: str, cache: Path) -> StaticEncoder:
    """The static encoder of a local model, its table in `cache`.

    ValueError for an unknown name; ModelFileError for missing or altered files.
    """
    model = find_local_model(name, cache)
    return StaticEncoder(model, prepare_model(model, STATIC, cache))
