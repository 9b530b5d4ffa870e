"""The encoder of a remote model: texts to unit vectors by an OpenAI-compatible server.

https://platform.openai.com/docs/api-reference/embeddings, as served by OpenAI, Voyage, Ollama,
vLLM, text-embeddings-inference and others. Of the optional fields only `dimensions` is sent, and
only where it is set: each of the others is refused by some server (`encoding_format` by Voyage),
and floats are what all of them send unasked.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from mail_assets.encoding.embeddings import (
    EmbeddingsError,
    Vectors,
    normalise_embeddings,
    read_dimension,
    read_usage,
    sort_embeddings,
)
from mail_assets.encoding.remote_model import RemoteModel
from mail_assets.openai.client import Client, Server
from mail_assets.openai.errors import EndpointError

PATH = "embeddings"
#: In one request, by the reference tokenizer. The lowest known limits are 120,000 (Voyage's large
#: models) and 300,000 (OpenAI); another tokenizer may count twice as many.
BATCH_TOKENS = 50_000
#: Seconds that a request waits in all for a server that is away or busy: people wait for a
#: query, a run that stops for nothing has to be started again.
QUERY_PATIENCE, DOCUMENT_PATIENCE = 15.0, 600.0
PROBE_TEXT = "dimension"


class RemoteEncoder:
    """A remote model, ready to be asked; safe to share between threads.

    `tokens_used` is what the server says it has counted, in all, which is what services bill (0
    where a server does not count). Nobody is asked before the first text.

    Raises:
        EndpointError: the server refuses, is away for too long, or answers what is no vector.
    """

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
        """The length of the vectors: as set, else that of a first answer, asked for once."""
        return self._dimension or self._learn_dimension(QUERY_PATIENCE)

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait for nobody: the server has its own queue."""
        return nullcontext()

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order of the texts.

        `progress` is called in this thread with the number of texts done so far; an exception
        from it, or from any request, stops the work.
        """
        dimension = self._dimension or self._learn_dimension(DOCUMENT_PATIENCE)
        vectors = np.empty((len(texts), dimension), np.float32)
        inputs = [self.model.document_prefix + text for text in texts]
        ranges = [*self._batches(inputs)]
        stopped, done = threading.Event(), 0

        def encode(batch: range) -> int:
            where = f"texts {batch.start + 1} to {batch.stop} of {len(texts)}"
            some = inputs[batch.start : batch.stop]
            vectors[batch.start : batch.stop] = self._request(
                some, where, DOCUMENT_PATIENCE, stopped
            )
            return len(batch)

        with ThreadPoolExecutor(self.model.in_flight, thread_name_prefix="endpoint") as workers:
            try:
                for count in workers.map(encode, ranges):
                    done += count
                    if progress is not None:
                        progress(done)
            finally:  # those that wait for the server must not hold back an error
                stopped.set()
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,)."""
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
        """Yield ranges of inputs, each of a request's size in texts and in tokens."""
        counts = (len(e.ids) for e in self.tokenizer.encode_batch_fast([*inputs]))
        start = tokens = 0
        for place, count in enumerate(counts):
            full = place - start == self.model.batch or tokens + count > BATCH_TOKENS
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
        return self._check(answer, len(inputs), where)

    def _locate(self, inputs: Sequence[str], where: str, error: EndpointError) -> str:
        if not error.too_long:
            return where
        longest = max(range(len(inputs)), key=lambda index: len(inputs[index]))
        text = inputs[longest]
        tokens = len(self.tokenizer.encode(text).ids)
        return (
            f"{where}, of which number {longest + 1} is the longest: {len(text)} characters, "
            f"{tokens} tokens of the reference tokenizer, it begins {text[:60]!r}. Set "
            f"MAIL_ENCODER_MAX_TOKENS, now {self.model.max_tokens}, lower and make chunks again"
        )

    def _check(self, answer: dict[str, Any], count: int, where: str) -> Vectors:
        """Count what an answer cost, and return its vectors."""
        self._count(answer)
        try:
            return normalise_embeddings(sort_embeddings(answer, count), self.dimension, where)
        except EmbeddingsError as error:
            raise self._nonsense(error) from None

    def _count(self, answer: dict[str, Any]) -> None:
        with self._counting:
            self.tokens_used += read_usage(answer)

    def _nonsense(self, error: EmbeddingsError) -> EndpointError:
        found = self._client.quote(str(error))
        return self._client.error(PATH, f"{self.model.model} answers with {found}")


def open_remote_encoder(model: RemoteModel, key: str, tokenizer: Tokenizer) -> RemoteEncoder:
    """The encoder of a remote model; `tokenizer` measures chunks and batches."""
    return RemoteEncoder(model, tokenizer, Client(Server("MAIL_ENCODER", model.url, key)))
