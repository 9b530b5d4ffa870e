"""The encoder of a remote model against a strict loopback server.

[test_remote_model] Remote models: a name that holds all of one, its sizes, its fingerprint.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding import remote_encoder as room
from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.encoding.open import (
    compute_fingerprint,
    find_dimension,
    open_tokenizer,
    resolve_model,
    short_name,
)
from mail_assets.encoding.remote_encoder import RemoteEncoder, RemoteModel, open_remote_encoder
from mail_assets.indexes.names import index_name
from mail_assets.indexes.vectors import index_spec
from mail_assets.openai.client import Client, EndpointError, Server
from mail_assets.text.chunking import build_document, chunk_body
from mail_assets_tests.encoding.fake_openai import (
    DIMENSION,
    MODEL,
    embeddings,
    fake_openai,
    vector,
)
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

    def open_(key: str = KEY, **options: Any) -> RemoteEncoder:
        client = Client(Server("MAIL_ENCODER", server.url, key), lambda stopped, seconds: None)
        model = RemoteModel(MODEL, server.url, **{"dimension": DIMENSION, **options})
        opened.append(RemoteEncoder(model, TOKENIZER, client))
        return opened[-1]

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


def test_a_query_is_one_vector(open_: Open) -> None:
    found = open_().encode_query("who?")
    assert found.shape == (DIMENSION,)
    np.testing.assert_allclose(found, unit("who?"), rtol=1e-5)


def test_no_texts_ask_nothing(open_: Open, server: FakeServer) -> None:
    assert open_().encode_documents([]).shape == (0, DIMENSION)
    assert server.seen == []


def test_prefixes_are_put_before_the_text(open_: Open, server: FakeServer) -> None:
    endpoint = open_(query_prefix="query: ", document_prefix="passage: ")
    endpoint.encode_query("wal")
    endpoint.encode_documents(["wal"])
    assert inputs(server) == [["query: wal"], ["passage: wal"]]


def test_a_set_dimension_is_sent_and_nothing_else_that_is_optional(
    open_: Open, server: FakeServer
) -> None:
    endpoint = open_(dimension=8)
    np.testing.assert_allclose(endpoint.encode_query("a"), unit("a", 8), rtol=1e-5)
    assert server.seen[0].body == {"model": MODEL, "input": ["a"], "dimensions": 8}


def test_a_dimension_that_is_not_set_is_learned_once_and_never_sent(
    open_: Open, server: FakeServer
) -> None:
    endpoint = open_(dimension=None)
    assert server.seen == []  # opening asks nobody
    assert endpoint.encode_documents(TEXTS[:2]).shape == (2, DIMENSION)
    assert endpoint.dimension == DIMENSION
    assert inputs(server) == [["dimension"], TEXTS[:2]]
    assert all("dimensions" not in seen.body for seen in server.seen)


def test_a_model_that_changes_its_dimension_is_refused(open_: Open, server: FakeServer) -> None:
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
def test_requests_hold_no_more_tokens_than_allowed_and_every_text_once(
    sizes: list[int], batch: int, most: int
) -> None:
    texts = [" ".join(["word"] * (size - 2)) for size in sizes]  # and two markers
    model = RemoteModel(MODEL, "http://127.0.0.1:1/v1", DIMENSION, batch=batch)
    with (
        pytest.MonkeyPatch.context() as patch,
        Client(Server("MAIL_ENCODER", model.url)) as client,
    ):
        patch.setattr(room, "BATCH_TOKENS", most)
        ranges = [*RemoteEncoder(model, TOKENIZER, client)._batches(texts)]
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


def test_progress_counts_the_texts_done(open_: Open) -> None:
    done: list[int] = []
    open_(batch=32).encode_documents(TEXTS, progress=done.append)
    assert done == [32, 64, 70]


def test_an_exception_from_progress_stops_the_work(open_: Open, server: FakeServer) -> None:
    class Cancelled(Exception):  # noqa: N818 - it is no error
        pass

    cancelled = threading.Event()

    def cancel(done: int) -> None:
        cancelled.set()
        raise Cancelled

    def answer_one(body: Json) -> Reply:
        """Answer the first text at once, and all others when the work has been stopped."""
        if body["input"] != TEXTS[:1]:
            cancelled.wait(LONG)
        return embeddings(body)

    server.routes["/v1/embeddings"] = answer_one
    with pytest.raises(Cancelled):
        open_(batch=1, in_flight=2).encode_documents(TEXTS, progress=cancel)
    assert len(server.seen) < len(TEXTS), "some may be asked for until the work has ended"


def test_a_request_that_fails_for_good_wakes_those_that_wait(server: FakeServer) -> None:
    waiting = threading.Event()

    def one_waits_one_fails(body: Json) -> Reply:
        if body["input"] == ["a"]:
            waiting.set()
            return Reply("", 429, [("Retry-After", "300")])
        waiting.wait(LONG)
        return Reply("wrong", 400)

    server.routes["/v1/embeddings"] = one_waits_one_fails
    model = RemoteModel(MODEL, server.url, DIMENSION, batch=1, in_flight=2)
    endpoint = open_remote_encoder(model, KEY, TOKENIZER)
    with pytest.raises(EndpointError, match="HTTP 400: wrong"):
        endpoint.encode_documents(["b", "a"])
    endpoint.close()


def test_usage_is_counted_over_all_requests(open_: Open) -> None:
    endpoint = open_(batch=16)
    endpoint.encode_documents(TEXTS)
    endpoint.encode_query("one two three")
    assert endpoint.tokens_used == 6 * len(TEXTS) + 3


def test_an_answer_that_is_no_vectors_is_refused_and_not_asked_for_again(
    open_: Open, server: FakeServer
) -> None:
    answering(server, lambda body: body["data"].pop())
    with pytest.raises(EndpointError) as caught:
        open_().encode_documents(TEXTS[:3])
    assert str(caught.value).startswith(
        f"{server.url}/embeddings: {MODEL} answers with 2 vectors for 3 texts"
    )
    assert len(server.seen) == 1


def test_a_dimension_that_no_bucket_takes_is_refused(open_: Open, server: FakeServer) -> None:
    answering(server, lambda body: body["data"][0].update(embedding=[]))
    with pytest.raises(EndpointError, match=f"{MODEL} answers with a vector of 0 numbers"):
        _ = open_(dimension=None).dimension


def test_a_text_too_long_is_named_by_its_place_with_the_remedy(
    open_: Open, server: FakeServer
) -> None:
    texts = [*TEXTS[:40], "a very long text " * 3000, *TEXTS[40:]]
    with pytest.raises(EndpointError) as caught:
        open_(in_flight=1).encode_documents(texts)
    error = str(caught.value)
    assert "maximum context length is 8191 tokens" in error
    assert "texts 33 to 64 of 71, of which number 9 is the longest: 51000 characters" in error
    assert "it begins 'a very long text" in error
    assert "Set MAIL_ENCODER_MAX_TOKENS, now 512, lower" in error
    assert len(error) < 600


def test_another_refusal_says_which_texts(open_: Open, server: FakeServer) -> None:
    with pytest.raises(EndpointError, match=r"an empty string \(texts 1 to 3 of 3\)"):
        open_().encode_documents(["a", "", "b"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "wrong"}, "HTTP 401: Incorrect API key provided; MAIL_ENCODER_KEY is refused"),
        ({"key": ""}, "MAIL_ENCODER_KEY is not set"),
        ({"dimension": 25}, "'dimensions' must be at most 24"),
    ],
)
def test_a_server_that_refuses_is_asked_once(
    open_: Open, server: FakeServer, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(EndpointError, match=says):
        open_(**options).encode_query("a")
    assert len(server.seen) == 1


def test_the_key_is_sent_and_never_told(
    open_: Open, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = open_()
    server.script = [Reply(f"not {KEY}", 503), None, Reply({"data": KEY})]
    endpoint.encode_query("a")
    with pytest.raises(EndpointError) as caught:
        endpoint.encode_query("a")
    shown = f"{caught.value}{caplog.text}{vars(endpoint)}"
    assert KEY not in shown
    assert "***" in str(caught.value)
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_no_key_sends_no_header(server: FakeServer) -> None:
    server.key = ""
    endpoint = open_remote_encoder(RemoteModel(MODEL, server.url), "", TOKENIZER)
    assert endpoint.encode_query("a").shape == (DIMENSION,)
    endpoint.close()


def test_rate_limits_cost_time_and_no_texts(open_: Open, server: FakeServer) -> None:
    limited = Reply("slow down", 429, [("Retry-After", "2")])
    server.script = [limited, None, limited, limited, None]
    vectors = open_(batch=10).encode_documents(TEXTS)
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS], rtol=1e-5)


def test_an_endpoint_says_what_it_is(open_: Open) -> None:
    endpoint = open_()
    assert endpoint.fingerprint == endpoint.model.fingerprint()
    assert endpoint.fingerprint != replace(endpoint.model, dimension=8).fingerprint()
    assert endpoint.tokenizer is TOKENIZER


LOCAL = RemoteModel("nomic-embed-text:v1.5", "http://127.0.0.1:11434/v1")

models = st.builds(
    RemoteModel,
    model=st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="@")
    ).filter(bool),
    url=st.sampled_from(["https://api.openai.com/v1", "http://[::1]:8000/v1"]),
    dimension=st.none() | st.integers(1, 4096),
    max_tokens=st.integers(700, 8192),
    query_prefix=st.text(max_size=40),
    document_prefix=st.text(max_size=40),
    batch=st.integers(1, 2048),
    in_flight=st.integers(1, 64),
)


@settings(max_examples=100)
@given(models)
def test_a_name_holds_all_of_a_model(model: RemoteModel) -> None:
    assert resolve_model(model.name) == model
    assert compute_fingerprint(model.name, "served") == model.fingerprint()
    assert index_name(model.name, "served").endswith(model.fingerprint())


def test_a_name_says_no_more_than_it_must() -> None:
    assert LOCAL.name == "openai:nomic-embed-text:v1.5@http://127.0.0.1:11434/v1"
    assert replace(LOCAL, dimension=256).name == f"{LOCAL.name}?dimension=256"


@settings(max_examples=50)
@given(models.map(lambda model: replace(model, dimension=4)))
def test_every_model_has_an_index_that_every_bucket_takes(model: RemoteModel) -> None:
    assert index_spec(model.name, "served").dimension == find_dimension(model.name) == 4


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("text-embedding-3-small", "text-embedding-3-small"),
        ("BAAI/bge-m3", "bge-m3"),
        ("hf.co/org/Model_X:Q4_K_M", "model-x-q4-k-m"),
        ("text-embedding-3-large-of-ours", "text-embedding-3-large"),
        ("/", ""),
    ],
)
def test_an_index_bears_the_models_own_name(model: str, short: str) -> None:
    assert short_name(RemoteModel(model).name) == short


@settings(max_examples=100)
@given(models)
def test_chunks_of_the_largest_size_fit_with_prefix_and_markers(model: RemoteModel) -> None:
    sizes = model.sizes
    assert sizes.max_tokens + len(model.document_prefix.encode()) + 2 == model.max_tokens
    assert 0 <= sizes.overlap < sizes.target <= 400
    assert sizes.target <= sizes.max_tokens


@pytest.mark.parametrize("text", ["x" * 30_000, "ภาษาไทย" * 3000, "word " * 9000, "漢字" * 4000])
def test_no_chunk_is_longer_in_characters_than_tokens_can_be(text: str) -> None:
    tokenizer = open_tokenizer(LOCAL.name)
    pieces = chunk_body(text, [(0, len(text))], "a subject", tokenizer, LOCAL.sizes).chunks
    assert len(pieces) > 1
    for piece in pieces:
        seen = build_document("a subject", piece.text)
        assert len(tokenizer.encode(seen).ids) <= LOCAL.max_tokens
        assert len(piece.text) <= 4 * LOCAL.max_tokens


@pytest.mark.parametrize(
    "change",
    [
        {"model": "nomic-embed-text:v1"},
        {"url": "http://gpu-box:11434/v1"},
        {"dimension": 256},
        {"max_tokens": 1024},
        {"query_prefix": "search_query: "},
        {"document_prefix": "search_document: "},
    ],
)
def test_what_changes_a_vectors_meaning_changes_the_fingerprint(change: dict[str, object]) -> None:
    assert replace(LOCAL, **change).fingerprint() != LOCAL.fingerprint()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 64},
        {"in_flight": 8},
        {"url": "http://127.0.0.1:8080/v1"},
        {"url": "https://127.0.0.1/api/v1"},
    ],
)
def test_what_only_changes_how_it_is_reached_does_not(change: dict[str, object]) -> None:
    assert replace(LOCAL, **change).fingerprint() == LOCAL.fingerprint()  # type: ignore[arg-type]


def test_a_fingerprint_is_what_it_was() -> None:
    # another one would have everybody encode, and pay for, everything again
    assert LOCAL.fingerprint() == "e5963b37921b9153"


def test_local_models_are_found_by_the_same_functions() -> None:
    assert resolve_model("all-minilm-l6-v2") is ALL_MINILM_L6_V2
    assert compute_fingerprint("all-minilm-l6-v2", "int8") == ALL_MINILM_L6_V2.fingerprint("int8")
    assert short_name("all-minilm-l6-v2") == "all-minilm-l6-v2"
    assert find_dimension("all-minilm-l6-v2") == 384
