"""A server with OpenAI's embeddings API on this machine, as cheap as an encoder can be.

    python -m benchmarks.loopback_encoder record ARCHIVES TABLE [--precision static]
    python -m benchmarks.loopback_encoder serve [TABLE] [--port 8089]

`record` encodes the texts of the archives that a corpus (benchmarks.corpus) is made of, once, and
prints how fast. `serve` answers with the vector of the source text that a text of the corpus was
made of, and noise of NOISE that the text decides. A text that comes from none gets a vector that
the text decides alone. Equal texts have equal vectors. It refuses what OpenAI refuses: another key,
path, model, field, content type or length.

A text of the corpus has other rare words than its source, and its chunks may be cut elsewhere. Both
have the words that stay, in their order: a text is known by the smallest hashes of some
neighbouring ones (Broder, On the resemblance and containment of documents, 1997), and the source
text that shares most of them is taken.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from benchmarks.corpus.source import Message, SourceList, read_source
from benchmarks.corpus.transplant import NO_WORDS, WORD, Renaming, Transplant, read_vocabulary
from benchmarks.encoding import chunks_of
from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.encoding.open import check_model
from mail_assets.encoding.static_encoder import StaticEncoder, open_static_encoder
from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.settings.settings import load_settings

#: Neighbouring words that are hashed together, the hashes that are kept of a text, and those of
#: them that must agree.
SHINGLE, KEPT, AGREEING = 4, 12, 3
#: Texts that are encoded between two lines of progress.
BATCH = 500

_WORD = re.compile(rb"[a-z0-9]+")

Vectors = npt.NDArray[np.float32]


class Texts(Protocol):
    """Finds the vector of the source's text that a text was made of."""

    def find(self, text: str) -> Vectors | None:
        """Return a unit vector, None where no text of the source is near."""


class NoTexts:
    """Knows no text: every vector is made up."""

    def find(self, text: str) -> Vectors | None:
        """Return None."""
        return None


class SourceVectors:
    """The recorded texts: `owners` has the number of a vector by each hash of its text."""

    def __init__(self, staying: frozenset[bytes], vectors: Vectors) -> None:
        self.staying, self.vectors = staying, vectors
        self.owners: dict[int, int] = {}

    def add(self, text: str, number: int) -> None:
        """Remember the text of a vector; hashes that another text has stay with that one."""
        for one in sketch(text, self.staying):
            self.owners.setdefault(one, number)

    def find(self, text: str) -> Vectors | None:
        """Return the vector of the text that most hashes speak for."""
        hashes = sketch(text, self.staying)
        votes = Counter(self.owners[one] for one in hashes if one in self.owners)
        if not votes:
            return None
        number, count = votes.most_common(1)[0]
        return self.vectors[number] if count >= min(AGREEING, len(hashes)) else None


def sketch(text: str, staying: frozenset[bytes]) -> list[int]:
    """Return the smallest hashes of neighbouring words that stay; of a few words, their one."""
    words = [
        word
        for word in _WORD.findall(text.lower().encode())
        if word in staying or not WORD.fullmatch(word)
    ]
    hashes = {
        crc32(b" ".join(words[at : at + SHINGLE])) for at in range(max(1, len(words) - SHINGLE + 1))
    }
    return sorted(hashes)[:KEPT] if words else []


class Rate(NamedTuple):
    """Cost of encoding: texts, and seconds of the processor and of the clock."""

    texts: int
    processor: float
    clock: float


def record(
    encoder: LocalEncoder | StaticEncoder, archives: Path, table: Path, limit: int | None = None
) -> Rate:
    """Encode the chunks of a corpus's source into a table, `limit` of each list at most."""
    lists = read_source(archives)
    vocabulary = read_vocabulary(message for one in lists for message in _messages(one))
    found = [text for one in lists for text in islice(_texts(one, encoder), limit)]
    vectors = np.empty((len(found), encoder.dimension), np.float32)
    clock, processor = time.perf_counter(), time.process_time()
    for start in range(0, len(found), BATCH):
        batch = found[start : start + BATCH]
        vectors[start : start + len(batch)] = encoder.encode_documents(batch)
        print(f"{start + len(batch)} of {len(found)} texts", flush=True)
    rate = Rate(len(found), time.process_time() - processor, time.perf_counter() - clock)
    words = b" ".join(sorted(vocabulary.staying))
    with table.open("wb") as file:
        np.savez(file, vectors=vectors.astype(np.float16), texts=found, words=words)
    return rate


def read_table(table: Path) -> SourceVectors:
    """Return what `record` wrote."""
    with np.load(table) as file:
        staying = frozenset(file["words"].item().split())
        known = SourceVectors(staying, file["vectors"].astype(np.float32))
        for number, text in enumerate(file["texts"]):
            known.add(str(text), number)
    return known


def _messages(one: SourceList) -> Iterator[Message]:
    return chain.from_iterable(one.months.values())


def _texts(one: SourceList, encoder: LocalEncoder | StaticEncoder) -> Iterator[str]:
    """Yield the chunks of a list, each text once, as the pipeline cuts them."""
    seen: set[str] = set()
    for month, messages in one.months.items():
        for pieces in messages:
            raw = Transplant(Renaming(NO_WORDS, 0), 0).write(pieces, years=0).raw
            try:
                message = parse_message(
                    RawMessage(0, len(raw), b"", raw, False, False), month=month, dialect="mboxrd"
                )
            except UnreadableMessageError:
                continue
            for chunk in chunks_of(message, encoder.tokenizer, encoder.model.sizes):
                if chunk.text not in seen:
                    seen.add(chunk.text)
                    yield chunk.text


MODEL, KEY, DIMENSION = "loopback-384", "sk-loopback", 384
#: The length of the noise on a unit vector.
NOISE = 0.35
#: A vector is sent in whole numbers, of this length: shorter to write and to read.
LENGTH = 1_000
MAX_INPUTS, MAX_CHARS, MAX_BODY = 2_048, 8_191 * 4, 64 << 20

_FIELDS = {"model", "input", "dimensions", "encoding_format", "user"}


class RefusedError(Exception):
    """A request that OpenAI would refuse, with the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer(body: object, texts: Texts) -> dict[str, Any]:
    """Return the answer to a request.

    Raises:
        RefusedError: it is none that OpenAI answers.
    """
    inputs = _read_inputs(body)
    data = [
        {"object": "embedding", "index": index, "embedding": embed(text, texts)}
        for index, text in enumerate(inputs)
    ]
    tokens = sum(map(len, inputs)) // 4
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": MODEL, "usage": usage}


def embed(text: str, texts: Texts) -> list[int]:
    """Return the vector of a text."""
    noise = _made_up(text)
    vector = texts.find(text)
    values = noise if vector is None else vector + NOISE * noise
    found: list[int] = np.rint(values * LENGTH).astype(np.int32).tolist()
    return found


def _made_up(text: str) -> Vectors:
    """Return a unit vector that the text decides."""
    drawn = np.frombuffer(hashlib.shake_256(text.encode()).digest(DIMENSION), np.uint8)
    values = drawn.astype(np.float32) - 127.5
    return np.asarray(values / np.linalg.norm(values), np.float32)


def _read_inputs(body: object) -> list[str]:
    if not isinstance(body, dict):
        raise RefusedError(400, "the body is no JSON object")
    if unknown := sorted(body.keys() - _FIELDS):
        raise RefusedError(400, f"Unrecognized request argument supplied: {unknown[0]}")
    if body.get("model") != MODEL:
        raise RefusedError(404, f"The model '{body.get('model')}' does not exist")
    if body.get("dimensions", DIMENSION) != DIMENSION:
        raise RefusedError(400, f"'dimensions' must be {DIMENSION}")
    if body.get("encoding_format", "float") != "float":
        raise RefusedError(400, "'encoding_format' must be float")
    given = body.get("input")
    inputs = [given] if isinstance(given, str) else given
    if not isinstance(inputs, list) or not 1 <= len(inputs) <= MAX_INPUTS:
        raise RefusedError(400, f"'$.input' is invalid: 1 to {MAX_INPUTS} strings")
    if not all(isinstance(text, str) and 1 <= len(text) <= MAX_CHARS for text in inputs):
        raise RefusedError(400, f"'$.input' is invalid: strings of 1 to {MAX_CHARS} characters")
    return inputs


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/embeddings."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # one write an answer: with its head apart, the client's delayed ACK costs 40 ms
    wbufsize = -1

    def __init__(self, texts: Texts, *arguments: Any) -> None:
        self._texts = texts
        super().__init__(*arguments)

    def do_POST(self) -> None:
        """Answer one request."""
        try:
            status, found = 200, answer(self._read(), self._texts)
        except RefusedError as refused:
            self.close_connection = True  # its body may not have been read
            error = {"message": str(refused), "type": "invalid_request_error"}
            status, found = refused.status, {"error": error}
        data = json.dumps(found, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _read(self) -> object:
        headers: Mapping[str, str] = self.headers  # type: ignore[assignment]  # one of str
        if self.path != "/v1/embeddings":
            raise RefusedError(404, f"Invalid URL (POST {self.path})")
        if headers.get("Authorization") != f"Bearer {KEY}":
            raise RefusedError(401, "Incorrect API key provided")
        if headers.get("Content-Type") != "application/json":
            raise RefusedError(415, "send JSON")
        length = headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY:
            raise RefusedError(413, f"Content-Length must be at most {MAX_BODY}")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise RefusedError(400, "the body is no JSON") from None

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing of each request."""


def open_server(texts: Texts, port: int = 0) -> ThreadingHTTPServer:
    """Return a server on the loopback, 0 for any free port; not yet serving."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, texts))


@contextmanager
def started(table: Path | None, port: int = 0) -> Iterator[int]:
    """Serve in a process of its own until the end of the block; yield its port, any for 0."""
    command = [sys.executable, "-m", "benchmarks.loopback_encoder", "serve", "--port", str(port)]
    with subprocess.Popen(
        [*command, *filter(None, [table])], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = iter(server.stdout or ())
            url = next(line for line in lines if line.startswith("export MAIL_ENCODER_URL="))
            yield int(url.rstrip().removesuffix("/v1").rpartition(":")[2])
        finally:
            server.terminate()


def variables(port: int) -> dict[str, str]:
    """Return the settings of a pipeline that encodes with the server."""
    return {
        "MAIL_ENCODER": f"openai:{MODEL}",
        "MAIL_ENCODER_URL": f"http://127.0.0.1:{port}/v1",
        "MAIL_ENCODER_KEY": KEY,
        "MAIL_ENCODER_DIMENSION": str(DIMENSION),
        # as many tokens as the model that is recorded takes
        "MAIL_ENCODER_MAX_TOKENS": "256",
    }


def main() -> None:
    """Record or serve."""
    parser = argparse.ArgumentParser(description="A cheap encoder for runs at scale.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="encode the source of a corpus")
    recording.add_argument("archives", type=Path, help="the source of the corpus")
    recording.add_argument("table", type=Path)
    recording.add_argument("--precision", default="static", choices=("static", "int8", "fp32"))
    recording.add_argument("--limit", type=int, help="texts of each list; default: all")
    serving = commands.add_parser("serve", help="answer until Ctrl-C")
    serving.add_argument("table", type=Path, nargs="?")
    serving.add_argument("--port", type=int, default=8089)
    arguments = parser.parse_args()
    if arguments.command == "record":
        _record(arguments)
        return
    texts: Texts = read_table(arguments.table) if arguments.table else NoTexts()
    with open_server(texts, arguments.port) as server:
        for name, value in variables(server.server_port).items():
            print(f"export {name}={value}", flush=True)
        server.serve_forever()


def _record(arguments: argparse.Namespace) -> None:
    settings = load_settings()
    name, cache = "all-minilm-l6-v2", settings.model_cache
    check_model(name, cache)
    if arguments.precision == "static":
        encoder: Any = open_static_encoder(name, cache)
    else:
        encoder = open_local_encoder(name, arguments.precision, cache)
    rate = record(encoder, arguments.archives, arguments.table, arguments.limit)
    print(
        f"{rate.texts} texts, {rate.processor:.0f} s of the processor, {rate.clock:.0f} s: "
        f"{rate.texts / rate.processor:.1f} texts a processor second"
    )


if __name__ == "__main__":
    main()
