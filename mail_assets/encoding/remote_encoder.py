"""Encode texts with a model on a server as unit vectors, by OpenAI's embeddings API.

https://platform.openai.com/docs/api-reference/embeddings, as served by OpenAI, Voyage, Ollama,
vLLM, text-embeddings-inference and others. The only optional field in a request is `dimensions`, if
it is set. Each of the others is refused by some server (`encoding_format` by Voyage), and all
servers return floats by default. Every answer is checked before use.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from mail_assets.encoding.models import MAX_DIMENSION, RemoteModel
from mail_assets.errors import DamagedDataError
from mail_assets.openai import Client, EndpointError, Server

PATH = "embeddings"
#: Tokens per request, counted by the reference tokenizer; another tokenizer may count twice as
#: many. The lowest known limits are 120,000 (Voyage's large models) and 300,000 (OpenAI).
BATCH_TOKENS = 50_000
#: Seconds in total to wait for a server that is down or busy. People wait for a query; a run that
#: stops too early has to be started again.
QUERY_PATIENCE, DOCUMENT_PATIENCE = 15.0, 600.0
PROBE_TEXT = "dimension"

Vectors = npt.NDArray[np.float32]


class EmbeddingsError(DamagedDataError):
    """An answer does not have the requested vectors; the message says what it has."""


class RemoteEncoder:
    """A model on a server; thread-safe.

    `tokens_used` is the server's own count, by which services bill (0 if a server does not count).
    No request is sent before the first text.

    Raises:
        EndpointError: the server refuses, is down for too long, or its answer is not a vector.
    """

    #: Texts per request: all servers accept 32, the default limit of text-embeddings-inference.
    batch = 32
    #: Concurrent requests.
    in_flight = 4

    def __init__(self, model: RemoteModel, tokenizer: Tokenizer, client: Client) -> None:
        self.model = model
        self.fingerprint = model.fingerprint()
        self.tokenizer = tokenizer
        self.tokens_used = 0
        self._dimension = model.dimension
        self._client = client
        self._counting, self._learning = threading.Lock(), threading.Lock()

    @property
    def dimension(self) -> int:
        """Return the dimension that is set; if none is set, ask the server once."""
        return self._dimension or self._learn_dimension(QUERY_PATIENCE)

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Do not wait: the server has its own queue."""
        return nullcontext()

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension), in the order of the texts."""
        dimension = self._dimension or self._learn_dimension(DOCUMENT_PATIENCE)
        vectors = np.empty((len(texts), dimension), np.float32)
        inputs = [self.model.document_prefix + text for text in texts]
        ranges = [*self._batches(inputs)]
        stopped = threading.Event()

        def encode(batch: range) -> None:
            where = f"texts {batch.start + 1} to {batch.stop} of {len(texts)}"
            some = inputs[batch.start : batch.stop]
            vectors[batch.start : batch.stop] = self._request(
                some, where, DOCUMENT_PATIENCE, stopped
            )

        with ThreadPoolExecutor(self.in_flight, thread_name_prefix="endpoint") as workers:
            try:
                list(workers.map(encode, ranges))  # raises the first error of a request
            finally:  # waiting requests must not delay an error
                stopped.set()
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimension,)."""
        (vector,) = self._request([self.model.query_prefix + text], "the query", QUERY_PATIENCE)
        return np.asarray(vector, np.float32)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _learn_dimension(self, patience: float) -> int:
        with self._learning:
            if self._dimension is None:
                body = {"model": self.model.model, "input": [PROBE_TEXT]}
                answer = self._client.post(PATH, body, patience)
                self._count(answer)
                try:
                    self._dimension = read_dimension(answer)
                except EmbeddingsError as error:
                    raise self._nonsense(error) from None
            return self._dimension

    def _batches(self, inputs: Sequence[str]) -> Iterator[range]:
        counts = (len(e.ids) for e in self.tokenizer.encode_batch_fast([*inputs]))
        start = tokens = 0
        for place, count in enumerate(counts):
            full = place - start == self.batch or tokens + count > BATCH_TOKENS
            if full and place > start:
                yield range(start, place)
                start, tokens = place, 0
            tokens += count
        if inputs:
            yield range(start, len(inputs))

    def _request(
        self,
        inputs: Sequence[str],
        where: str,
        patience: float,
        stopped: threading.Event | None = None,
    ) -> Vectors:
        body: dict[str, Any] = {"model": self.model.model, "input": inputs}
        if self.model.dimension:
            body["dimensions"] = self.model.dimension
        try:
            answer = self._client.post(PATH, body, patience, stopped)
        except EndpointError as error:
            raise EndpointError(f"{error} ({self._locate(inputs, where, error)})") from None
        self._count(answer)
        try:
            found = sort_embeddings(answer, len(inputs))
            return normalise_embeddings(found, self.dimension, where)
        except EmbeddingsError as error:
            raise self._nonsense(error) from None

    def _locate(self, inputs: Sequence[str], where: str, error: EndpointError) -> str:
        if not error.too_long:
            return where
        longest = max(range(len(inputs)), key=lambda index: len(inputs[index]))
        text = inputs[longest]
        tokens = len(self.tokenizer.encode(text).ids)
        return (
            f"{where}; number {longest + 1} is the longest: {len(text)} characters, "
            f"{tokens} tokens of the reference tokenizer, it begins {text[:60]!r}. Set "
            f"MAIL_ENCODER_MAX_TOKENS, now {self.model.max_tokens}, lower and make chunks again"
        )

    def _count(self, answer: dict[str, Any]) -> None:
        with self._counting:
            self.tokens_used += read_usage(answer)

    def _nonsense(self, error: EmbeddingsError) -> EndpointError:
        found = self._client.quote(str(error))
        return self._client.error(PATH, f"{self.model.model} answers with {found}")


def open_remote_encoder(model: RemoteModel, key: str, tokenizer: Tokenizer) -> RemoteEncoder:
    """Open the encoder of a remote model; `tokenizer` measures chunks and batches."""
    return RemoteEncoder(model, tokenizer, Client(Server("MAIL_ENCODER", model.url, key)))


def sort_embeddings(answer: dict[str, Any], count: int) -> list[Any]:
    """Return the embeddings of an answer in the order of their `index`."""
    data = answer.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise EmbeddingsError(f"no list of data: {answer}")
    indexes = [item.get("index") for item in data]
    whole = all(isinstance(index, int) for index in indexes)
    if not whole or sorted(indexes) != [*range(count)]:
        raise EmbeddingsError(
            f"{len(data)} vectors for {count} texts, with index {str(indexes)[:60]}"
        )
    return [item.get("embedding") for item in sorted(data, key=lambda item: item["index"])]


def normalise_embeddings(rows: list[Any], dimension: int, where: str) -> Vectors:
    """Return embeddings as unit vectors, shape (len(rows), dimension); `where` is for errors."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != dimension:
            found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
            raise EmbeddingsError(
                f"{found} instead of a vector of {dimension} for number {number} of "
                f"{where}; check MAIL_ENCODER_DIMENSION and whether the model was changed"
            )
    try:
        matrix = np.asarray(rows)
        numbers = matrix.ndim == 2 and matrix.dtype.kind in "iuf"
    except ValueError:  # a list among the numbers
        numbers = False
    if not numbers:  # text and null make another kind of array
        raise EmbeddingsError(f"values that are not numbers, in {where}")
    with np.errstate(over="ignore"):  # a number too large to square gives an infinite length
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
    if bad.any():
        raise EmbeddingsError(
            f"a zero vector, or infinite or missing numbers, for number {bad.argmax() + 1} of "
            f"{where}; the model cannot be used"
        )
    return np.asarray(matrix / lengths, np.float32)


def read_dimension(answer: dict[str, Any]) -> int:
    """Return the dimension of an answer's only embedding."""
    (values,) = sort_embeddings(answer, 1)
    found = len(values) if isinstance(values, list) else 0
    if not 1 <= found <= MAX_DIMENSION:
        raise EmbeddingsError(f"a vector of {found} numbers; use a model with 1 to {MAX_DIMENSION}")
    return found


def read_usage(answer: dict[str, Any]) -> int:
    """Return the server's count of tokens (OpenAI `prompt_tokens`, Voyage `total_tokens`), or 0."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return 0
    used = usage.get("prompt_tokens") or usage.get("total_tokens") or 0
    return used if isinstance(used, int) else 0
