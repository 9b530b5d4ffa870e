"""The encoder of a remote model against a strict loopback server; names and fingerprints."""

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding import remote_encoder as room
from mail_assets.encoding.models import RemoteModel
from mail_assets.encoding.open import open_tokenizer
from mail_assets.encoding.remote_encoder import RemoteEncoder
from mail_assets.openai import Client, EndpointError, Server
from mail_assets_tests.encoding.fake_openai import DIMENSION, MODEL, embeddings, fake_openai, vector
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Json, Reply, serving
from mail_assets_tests.waits import LONG

TOKENIZER = open_tokenizer("all-minilm-l6-v2")
TEXTS = [f"text number {n} of a list" for n in range(70)]

Open = Callable[..., RemoteEncoder]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(fake_openai()) as server:
        yield server


@pytest.fixture
def open_(server: FakeServer) -> Iterator[Open]:
    """`open_(batch=7)`: an endpoint of the server that never really pauses."""
    opened: list[RemoteEncoder] = []

    def open_(key: str = KEY, batch: int = 32, in_flight: int = 4, **options: Any) -> RemoteEncoder:
        client = Client(Server("MAIL_ENCODER", server.url, key), lambda stopped, seconds: None)
        model = RemoteModel(MODEL, server.url, **{"dimension": DIMENSION, **options})
        encoder = RemoteEncoder(model, TOKENIZER, client)
        encoder.batch, encoder.in_flight = batch, in_flight
        opened.append(encoder)
        return encoder

    yield open_
    for endpoint in opened:
        endpoint.close()


def unit(text: str, dimension: int = DIMENSION) -> list[float]:
    values = np.array(vector(text, dimension))
    return (values / np.linalg.norm(values)).tolist()  # type: ignore[no-any-return]


def inputs(server: FakeServer) -> list[list[str]]:
    return [seen.body["input"] for seen in server.seen]


def answering(server: FakeServer, change: Callable[[Json], object]) -> None:
    """Make the server's answers go through `change`, which edits one in place."""

    def changed(body: Json) -> Reply:
        reply = embeddings(body)
        change(reply.body)
        return reply

    server.routes["/v1/embeddings"] = changed


def test_vectors_have_length_1_and_the_order_of_the_texts(open_: Open) -> None:
    vectors = open_().encode_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSION)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS], rtol=1e-5)


def test_query_is_one_vector(open_: Open) -> None:
    found = open_().encode_query("who?")
    assert found.shape == (DIMENSION,)
    np.testing.assert_allclose(found, unit("who?"), rtol=1e-5)


def test_no_texts_send_no_request(open_: Open, server: FakeServer) -> None:
    assert open_().encode_documents([]).shape == (0, DIMENSION)
    assert server.seen == []


def test_prefixes_are_put_before_the_text(open_: Open, server: FakeServer) -> None:
    endpoint = open_(query_prefix="query: ", document_prefix="passage: ")
    endpoint.encode_query("wal")
    endpoint.encode_documents(["wal"])
    assert inputs(server) == [["query: wal"], ["passage: wal"]]


def test_of_optional_fields_only_a_set_dimension_is_sent(open_: Open, server: FakeServer) -> None:
    endpoint = open_(dimension=8)
    np.testing.assert_allclose(endpoint.encode_query("a"), unit("a", 8), rtol=1e-5)
    assert server.seen[0].body == {"model": MODEL, "input": ["a"], "dimensions": 8}


def test_unset_dimension_is_learned_once_and_never_sent(open_: Open, server: FakeServer) -> None:
    endpoint = open_(dimension=None)
    assert server.seen == []  # opening asks nobody
    assert endpoint.encode_documents(TEXTS[:2]).shape == (2, DIMENSION)
    assert endpoint.dimension == DIMENSION
    assert inputs(server) == [["dimension"], TEXTS[:2]]
    assert all("dimensions" not in seen.body for seen in server.seen)


def test_model_that_changes_its_dimension_is_refused(open_: Open, server: FakeServer) -> None:
    endpoint = open_(dimension=None)
    endpoint.encode_query("a")
    answering(server, lambda body: body["data"][0]["embedding"].pop())
    with pytest.raises(EndpointError, match=f"23 numbers instead of a vector of {DIMENSION}"):
        endpoint.encode_query("b")


def test_requests_hold_no_more_texts_than_set(open_: Open, server: FakeServer) -> None:
    open_(batch=16, in_flight=1).encode_documents(TEXTS)
    assert [len(texts) for texts in inputs(server)] == [16, 16, 16, 16, 6]
    assert [text for texts in inputs(server) for text in texts] == TEXTS


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 60), max_size=40),
    batch=st.integers(1, 9),
    most=st.integers(20, 90),
)
def test_requests_hold_every_text_once_within_the_tokens(
    sizes: list[int], batch: int, most: int
) -> None:
    texts = [" ".join(["word"] * (size - 2)) for size in sizes]  # and two markers
    model = RemoteModel(MODEL, "http://127.0.0.1:1/v1", DIMENSION)
    with pytest.MonkeyPatch.context() as patch, Client(Server("MAIL_ENCODER", model.url)) as client:
        patch.setattr(room, "BATCH_TOKENS", most)
        encoder = RemoteEncoder(model, TOKENIZER, client)
        encoder.batch = batch
        ranges = [*encoder._batches(texts)]
    assert [place for some in ranges for place in some] == [*range(len(texts))]
    counts = [len(TOKENIZER.encode(text).ids) for text in texts]
    for some in ranges:
        assert 1 <= len(some) <= batch
        assert len(some) == 1 or sum(counts[place] for place in some) <= most
    for some, following in pairwise(ranges):  # none could have been spared
        full = len(some) == batch
        assert full or sum(counts[p] for p in some) + counts[following.start] > most


def test_as_many_requests_run_at_once_as_set(open_: Open, server: FakeServer) -> None:
    meeting = threading.Barrier(3, timeout=LONG)

    def together(body: Json) -> Reply:
        meeting.wait()
        return embeddings(body)

    server.routes["/v1/embeddings"] = together
    vectors = open_(batch=10, in_flight=3).encode_documents(TEXTS[:60])
    assert server.most_at_once == 3
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS[:60]], rtol=1e-5)


def test_failed_request_wakes_those_that_wait(server: FakeServer) -> None:
    waiting, failed = threading.Event(), threading.Event()
    told: list[threading.Event] = []

    def pause(stopped: threading.Event, seconds: float) -> None:
        told.append(stopped)
        waiting.set()
        failed.wait(LONG)  # then it asks again, unless it was told to stop

    def one_waits_one_fails(body: Json) -> Reply:
        if body["input"] == ["a"]:
            return embeddings(body) if told else Reply("", 429, [("Retry-After", "300")])
        waiting.wait(LONG)
        failed.set()
        return Reply("wrong", 400)

    server.routes["/v1/embeddings"] = one_waits_one_fails
    model = RemoteModel(MODEL, server.url, DIMENSION)
    with Client(Server("MAIL_ENCODER", server.url, KEY), pause) as client:
        endpoint = RemoteEncoder(model, TOKENIZER, client)
        endpoint.batch, endpoint.in_flight = 1, 2
        with pytest.raises(EndpointError, match="HTTP 400: wrong"):
            endpoint.encode_documents(["b", "a"])
    assert [stopped.is_set() for stopped in told] == [True]


def test_usage_is_counted_over_all_requests(open_: Open) -> None:
    endpoint = open_(batch=16)
    endpoint.encode_documents(TEXTS)
    endpoint.encode_query("one two three")
    assert endpoint.tokens_used == 6 * len(TEXTS) + 3


def test_a_dimension_that_no_bucket_takes_is_refused(open_: Open, server: FakeServer) -> None:
    answering(server, lambda body: body["data"][0].update(embedding=[]))
    with pytest.raises(EndpointError, match=f"{MODEL} answers with a vector of 0 numbers"):
        _ = open_(dimension=None).dimension


def test_text_too_long_is_named_by_its_place_with_remedy(open_: Open, server: FakeServer) -> None:
    texts = [*TEXTS[:40], "a very long text " * 3000, *TEXTS[40:]]
    with pytest.raises(EndpointError) as caught:
        open_(in_flight=1).encode_documents(texts)
    error = str(caught.value)
    assert "maximum context length is 8191 tokens" in error
    assert "texts 33 to 64 of 71; number 9 is the longest: 51000 characters" in error
    assert "it begins 'a very long text" in error
    assert "Set MAIL_ENCODER_MAX_TOKENS, now 512, lower" in error
    assert len(error) < 600
