"""The encoder of a remote model: texts to unit vectors by an OpenAI-compatible server.

https://platform.openai.com/docs/api-reference/embeddings, as served by OpenAI, Voyage, Ollama,
vLLM, text-embeddings-inference and others. Of the optional fields only `dimensions` is sent, and
only where it is set: each of the others is refused by some server (`encoding_format` by Voyage),
and floats are what all of them send unasked.
Nothing is trusted: the number of vectors, their order, dimension and values are checked.
What does not live here: attempts and errors of HTTP (openai/client.py), settings (remote.py).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from mail_assets.encoding.remote import MAX_DIMENSION, RemoteModel
from mail_assets.openai.client import Client, Server
from mail_assets.openai.errors import EndpointError

Vectors = npt.NDArray[np.float32]

PATH = "embeddings"
#: Of the ruler, in one request. The lowest known limits are 120,000 (Voyage's large models) and
#: 300,000 (OpenAI); another tokenizer may count twice as many.
BATCH_TOKENS = 50_000
#: Seconds that a request waits in all for a server that is away or busy: people wait for a
#: query, a run that stops for nothing has to be started again.
QUERY_PATIENCE, DOCUMENT_PATIENCE = 15.0, 600.0
PROBE = "dimension"


class Endpoint:
    """A remote model, ready to be asked; safe to share between threads.

    `tokens_used` is what the server says it has counted, in all, which is what services bill (0
    where a server does not count). Nobody is asked before the first text.

    Raises:
        EndpointError: the server refuses, is away for too long, or answers what is no vector.
    """

    def __init__(self, profile: RemoteModel, tokenizer: Tokenizer, client: Client) -> None:
        self.profile = profile
        self.fingerprint = profile.fingerprint()
        self.tokenizer = tokenizer
        self.tokens_used = 0
        self._dimension = profile.dimension
        self._client = client
        self._counting, self._learning = threading.Lock(), threading.Lock()

    @property
    def dimension(self) -> int:
        """The length of the vectors: as set, else that of a first answer, asked for once."""
        return self._dimension or self._learn(QUERY_PATIENCE)

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order of the texts.

        `progress` is called in this thread with the number of texts done so far; an exception
        from it, or from any request, stops the work.
        """
        dimension = self._dimension or self._learn(DOCUMENT_PATIENCE)
        vectors = np.empty((len(texts), dimension), np.float32)
        inputs = [self.profile.document_prefix + text for text in texts]
        ranges = [*self._batches(inputs)]
        stopped, done = threading.Event(), 0

        def encode(batch: range) -> int:
            where = f"texts {batch.start + 1} to {batch.stop} of {len(texts)}"
            some = inputs[batch.start : batch.stop]
            vectors[batch.start : batch.stop] = self._ask(some, where, DOCUMENT_PATIENCE, stopped)
            return len(batch)

        with ThreadPoolExecutor(self.profile.in_flight, thread_name_prefix="endpoint") as workers:
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
        (vector,) = self._ask([self.profile.query_prefix + text], "the query", QUERY_PATIENCE)
        return np.asarray(vector, np.float32)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _learn(self, patience: float) -> int:
        with self._learning:
            if self._dimension is None:
                body = {"model": self.profile.model, "input": [PROBE]}
                answer = self._client.post(PATH, body, patience)
                self._count(answer)
                (values,) = self._in_order(answer, 1)
                found = len(values) if isinstance(values, list) else 0
                if not 1 <= found <= MAX_DIMENSION:
                    raise self._nonsense(
                        f"a vector of {found} numbers, 1 to {MAX_DIMENSION} will do"
                    )
                self._dimension = found
            return self._dimension

    def _batches(self, inputs: Sequence[str]) -> Iterator[range]:
        """Yield ranges of inputs, each of a request's size in texts and in tokens."""
        counts = (len(e.ids) for e in self.tokenizer.encode_batch_fast([*inputs]))
        start = tokens = 0
        for place, count in enumerate(counts):
            full = place - start == self.profile.batch or tokens + count > BATCH_TOKENS
            if full and place > start:
                yield range(start, place)
                start, tokens = place, 0
            tokens += count
        if inputs:
            yield range(start, len(inputs))

    def _ask(
        self,
        inputs: Sequence[str],
        where: str,
        patience: float,
        stopped: threading.Event | None = None,
    ) -> Vectors:
        body: dict[str, Any] = {"model": self.profile.model, "input": inputs}
        if self.profile.dimension:
            body["dimensions"] = self.profile.dimension
        try:
            answer = self._client.post(PATH, body, patience, stopped)
        except EndpointError as error:
            raise EndpointError(f"{error} ({self._place(inputs, where, error)})") from None
        self._count(answer)
        return self._unit(self._in_order(answer, len(inputs)), where)

    def _place(self, inputs: Sequence[str], where: str, error: EndpointError) -> str:
        if not error.too_long:
            return where
        longest = max(range(len(inputs)), key=lambda index: len(inputs[index]))
        text = inputs[longest]
        tokens = len(self.tokenizer.encode(text).ids)
        return (
            f"{where}, of which number {longest + 1} is the longest: {len(text)} characters, "
            f"{tokens} tokens of the ruler, it begins {text[:60]!r}. Set "
            f"MAIL_ENCODER_MAX_TOKENS, now {self.profile.max_tokens}, lower and make chunks again"
        )

    def _in_order(self, answer: dict[str, Any], count: int) -> list[Any]:
        """Return the embeddings by their `index`: an answer may come in any order."""
        data = answer.get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._nonsense(f"no list of data: {self._client.quote(str(answer), 80)}")
        indexes = [item.get("index") for item in data]
        whole = all(isinstance(index, int) for index in indexes)
        if not whole or sorted(indexes) != [*range(count)]:
            raise self._nonsense(
                f"{len(data)} vectors for {count} texts, with index {str(indexes)[:60]}"
            )
        return [item.get("embedding") for item in sorted(data, key=lambda item: item["index"])]

    def _unit(self, rows: list[Any], where: str) -> Vectors:
        """Check values and dimension; return the rows with length 1."""
        dimension = self.dimension
        for number, row in enumerate(rows, 1):
            if not isinstance(row, list) or len(row) != dimension:
                found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
                raise self._nonsense(
                    f"{found} instead of a vector of {dimension} for number {number} of "
                    f"{where}; check MAIL_ENCODER_DIMENSION, or the model was changed"
                )
        try:
            matrix = np.asarray(rows)
            numbers = matrix.ndim == 2 and matrix.dtype.kind in "iuf"
        except ValueError:  # a list among the numbers
            numbers = False
        if not numbers:  # text and null make another kind of array
            raise self._nonsense(f"what are no numbers, in {where}")
        with np.errstate(over="ignore"):  # too large to be squared: infinite
            lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
        if bad.any():
            raise self._nonsense(
                f"zero, infinite or no numbers in the vector of number {bad.argmax() + 1} of "
                f"{where}; the model cannot be used"
            )
        return np.asarray(matrix / lengths, np.float32)

    def _count(self, answer: dict[str, Any]) -> None:
        """Add what the server says it has used: OpenAI `prompt_tokens`, Voyage `total_tokens`."""
        usage = answer.get("usage")
        if isinstance(usage, dict):
            used = usage.get("prompt_tokens") or usage.get("total_tokens") or 0
            with self._counting:
                self.tokens_used += used if isinstance(used, int) else 0

    def _nonsense(self, what: str) -> EndpointError:
        return self._client.error(PATH, f"{self.profile.model} answers with {what}")


def load_endpoint(profile: RemoteModel, key: str, tokenizer: Tokenizer) -> Endpoint:
    """The encoder of a remote model; `tokenizer` is the ruler of chunks and batches."""
    return Endpoint(profile, tokenizer, Client(Server("MAIL_ENCODER", profile.url, key)))
