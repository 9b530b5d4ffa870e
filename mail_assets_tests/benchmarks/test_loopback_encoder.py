"""The loopback encoder gives near vectors to texts of one source, and refuses what OpenAI does."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.loopback_encoder import (
    DIMENSION,
    KEY,
    MODEL,
    NoTexts,
    SourceVectors,
    Texts,
    open_server,
)
from mail_assets.encoding.models import RemoteModel
from mail_assets.encoding.open import open_tokenizer
from mail_assets.encoding.remote_encoder import RemoteEncoder, open_remote_encoder

SOURCE = "the gauge at the outer pier stops when barnacles grow on the float of it in the spring"
COPY = "the gauge at the outer pier stops when tovirage grow on the float of it in the spring"
OTHER = "from berth three one sees that the quay has been quiet for all of a long and windy summer"


def staying() -> frozenset[bytes]:
    return frozenset(f"{SOURCE} {OTHER}".replace("barnacles", "").encode().split())


@pytest.fixture
def texts() -> Texts:
    chance = np.random.default_rng(7)
    vectors = chance.standard_normal((2, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    known = SourceVectors(staying(), vectors)
    known.add(SOURCE, 0)
    known.add(OTHER, 1)
    return known


@pytest.fixture
def port(texts: Texts) -> Iterator[int]:
    with open_server(texts) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def encoder(port: int) -> Iterator[RemoteEncoder]:
    model = RemoteModel(MODEL, f"http://127.0.0.1:{port}/v1", DIMENSION)
    opened = open_remote_encoder(model, KEY, open_tokenizer("all-minilm-l6-v2"))
    yield opened
    opened.close()


def test_a_text_of_the_corpus_lies_near_the_text_it_was_made_of(
    encoder: RemoteEncoder, texts: SourceVectors
) -> None:
    source, copy, other = encoder.encode_documents([SOURCE, COPY, OTHER])
    assert texts.vectors[0] @ copy == pytest.approx(1 / np.sqrt(1 + 0.35**2), abs=0.03)
    assert source @ copy > 0.8 > 0.3 > abs(copy @ other)
    assert not np.array_equal(source, copy)


def test_equal_texts_have_equal_vectors(encoder: RemoteEncoder) -> None:
    unknown = "zirconium xylophones quarrel"
    first, again, another = encoder.encode_documents([unknown, unknown, f"{unknown} loudly"])
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, encoder.encode_query(unknown))
    assert abs(first @ another) < 0.3


def test_without_a_table_every_text_is_unknown() -> None:
    assert NoTexts().find(SOURCE) is None
