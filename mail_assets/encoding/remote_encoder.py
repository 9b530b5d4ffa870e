"""The encoder of a remote model: texts to unit vectors by an OpenAI-compatible server.

https://platform.openai.com/docs/api-reference/embeddings, as served by OpenAI, Voyage, Ollama,
vLLM, text-embeddings-inference and others. Of the optional fields only `dimensions` is sent, and
only where it is set: each of the others is refused by some server (`encoding_format` by Voyage),
and floats are what all of them send unasked.

[remote_model] A model behind an OpenAI-compatible server: what must be known of it, and its fingerprint.

A remote model is written as one name that holds all of it but the key, so that the name can be
passed wherever a local model's name can:

    openai:MODEL@URL
    openai:MODEL@URL?dimension=512&max_tokens=2048&query_prefix=...

[embeddings] The answer of an OpenAI-compatible embeddings server, checked: order, dimension, values, usage.

https://platform.openai.com/docs/api-reference/embeddings. Nothing in an answer is trusted.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from mail_assets.errors import DamagedDataError
from mail_assets.openai.client import Client, EndpointError, Server
from mail_assets.text.chunking import CHUNKER_VERSION, ChunkSizes

REMOTE_SCHEME = "openai:"
DEFAULT_URL = "https://api.openai.com/v1"
#: The precision of every remote model: int8 or fp32 is the server's choice.
REMOTE_PRECISION = "served"

MAX_DIMENSION = 4096  # of a vector bucket
#: Tokens around a text ([CLS], [SEP]); some models have none.
SPECIAL_TOKENS = 2
#: The reference tokenizer counts a run of 100 letters or more as one token, whatever its length.
#: A text of 512 tokens has 2,048 characters at most: even at one token a byte, OpenAI's 8,191 are
#: enough.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class RemoteModel:
    """A model on a server, and how text is put to it.

    `dimension` is asked for with each request; None leaves it to the model, whose first answer
    shows it. `max_tokens` is the longest input in tokens of the reference tokenizer, the default
    local model's WordPiece. `batch` texts make a request, `in_flight` run at once.
    """

    model: str
    url: str = DEFAULT_URL
    dimension: int | None = None
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""
    # What every server takes: text-embeddings-inference 32, Cohere 96, Gemini 100, Voyage 1,000,
    # OpenAI 2,048.
    batch: int = 32
    in_flight: int = 4

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the model of a name that `name` once returned."""
        model, _, place = name.removeprefix(REMOTE_SCHEME).rpartition("@")
        url, _, query = place.partition("?")
        kinds = {field.name: str if field.type is str else int for field in fields(cls)}
        options = {key: kinds[key](value) for key, value in parse_qsl(query)}
        return cls(model, url, **options)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """All of it as one name; defaults are left out."""
        defaults = asdict(RemoteModel(self.model, self.url))
        options = {k: v for k, v in asdict(self).items() if v != defaults[k]}
        query = f"?{urlencode(options)}" if options else ""
        return f"{REMOTE_SCHEME}{self.model}@{self.url}{query}"

    @property
    def short_name(self) -> str:
        """The model's name as it is part of an index's name."""
        last = self.model.rstrip("/").rpartition("/")[2].lower()
        return re.sub(r"[^a-z0-9.]+", "-", last)[:22]

    @property
    def sizes(self) -> ChunkSizes:
        """Chunk sizes: a chunk fits with its prefix. Longer chunks than 400 find no better."""
        # A prefix has no more tokens than bytes.
        room = self.max_tokens - SPECIAL_TOKENS - len(self.document_prefix.encode())
        target = min(400, room * 4 // 5)
        smallest = target // 8
        chars = CHARS_PER_TOKEN * self.max_tokens
        return ChunkSizes(
            target, room, min_tokens=smallest, overlap=smallest, max_chars=min(chars, 8000)
        )

    def fingerprint(self, precision: str = REMOTE_PRECISION) -> str:
        """16 hex characters over all that changes the meaning of a vector.

        The server's host is part of it: two services may give one name to two models. Its port
        and path are not: they move. No server is asked.
        """
        ingredients = {
            "endpoint": [self.model, urlsplit(self.url).hostname],
            "dimension": self.dimension,
            "prefixes": [self.query_prefix, self.document_prefix],
            "sizes": self.sizes._asdict(),
            "chunker": CHUNKER_VERSION,
        }
        return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


Vectors = npt.NDArray[np.float32]


class EmbeddingsError(DamagedDataError):
    """An answer without the vectors asked for; the message says what it has instead."""


def sort_embeddings(answer: dict[str, Any], count: int) -> list[Any]:
    """The embeddings of an answer by their `index`: it may have them in any order.

    Raises:
        EmbeddingsError: there is not one for each of `count` texts.
    """
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
    """The embeddings with length 1, shape (len(rows), dimension); `where` names their texts.

    Raises:
        EmbeddingsError: one has another dimension, or values that are no finite numbers.
    """
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != dimension:
            found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
            raise EmbeddingsError(
                f"{found} instead of a vector of {dimension} for number {number} of "
                f"{where}; check MAIL_ENCODER_DIMENSION, or the model was changed"
            )
    try:
        matrix = np.asarray(rows)
        numbers = matrix.ndim == 2 and matrix.dtype.kind in "iuf"
    except ValueError:  # a list among the numbers
        numbers = False
    if not numbers:  # text and null make another kind of array
        raise EmbeddingsError(f"what are no numbers, in {where}")
    with np.errstate(over="ignore"):  # too large to be squared: infinite
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
    if bad.any():
        raise EmbeddingsError(
            f"zero, infinite or no numbers in the vector of number {bad.argmax() + 1} of "
            f"{where}; the model cannot be used"
        )
    return np.asarray(matrix / lengths, np.float32)


def read_dimension(answer: dict[str, Any]) -> int:
    """The length of the one embedding of an answer.

    Raises:
        EmbeddingsError: there is not one, or no vector bucket takes its length.
    """
    (values,) = sort_embeddings(answer, 1)
    found = len(values) if isinstance(values, list) else 0
    if not 1 <= found <= MAX_DIMENSION:
        raise EmbeddingsError(f"a vector of {found} numbers, 1 to {MAX_DIMENSION} will do")
    return found


def read_usage(answer: dict[str, Any]) -> int:
    """The tokens that the server counted: OpenAI `prompt_tokens`, Voyage `total_tokens`; or 0."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return 0
    used = usage.get("prompt_tokens") or usage.get("total_tokens") or 0
    return used if isinstance(used, int) else 0


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
