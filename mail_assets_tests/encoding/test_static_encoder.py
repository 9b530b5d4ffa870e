"""The precision static: batches, one prepared table, and common words make texts similar.

test_local_encoder.py has what holds at every precision.
"""

from pathlib import Path

import numpy as np
import pytest

from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.encoding.open import open_encoder
from mail_assets.encoding.static_encoder import BATCH, StaticEncoder, open_static_encoder

NAME = ALL_MINILM_L6_V2.name
TEXTS = [
    "The vacuum worker holds a lock on the table.",
    "Which worker locks my tables during a vacuum?",
    "Our meeting moves to Thursday afternoon.",
    "Shall we move the Thursday meeting?",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="module")
def encoder(cache: Path) -> StaticEncoder:
    return open_static_encoder(NAME, cache)


def test_vector_does_not_depend_on_its_batch(encoder: StaticEncoder) -> None:
    alone = [encoder.encode_query(text).tobytes() for text in TEXTS]
    many = encoder.encode_documents(TEXTS * (BATCH // 2))
    assert [vector.tobytes() for vector in many] == alone * (BATCH // 2)


def test_each_text_is_nearest_to_the_one_of_the_same_words(encoder: StaticEncoder) -> None:
    vectors = encoder.encode_documents(TEXTS)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert cosines.argmax(axis=1).tolist() == [1, 0, 3, 2]


def test_prepared_table_is_used_again_to_the_bit(encoder: StaticEncoder, cache: Path) -> None:
    (table,) = cache.glob("*.npy")
    before = table.stat()
    again = open_encoder(NAME, "static", cache)
    assert isinstance(again, StaticEncoder)
    assert again.encode_documents(TEXTS).tobytes() == encoder.encode_documents(TEXTS).tobytes()
    assert table.stat().st_mtime_ns == before.st_mtime_ns
