"""The embeddings of a strict loopback server, in this process or in one that can be killed.

    python -m mail_assets_tests.encoding.fake_openai PORT LOG REQUESTS

serves REQUESTS requests, then kills its own process with SIGKILL instead of the next answer. It
appends each request's texts to LOG before it answers, one JSON list a line. A text's vector is
made from the hash of its words; white space does not matter. Like those of some models, it does
not have length 1.
"""

import hashlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

from mail_assets_tests.openai.fake_server import FakeServer, Json, Refusal, Reply, serving

MODEL = "made-3-small"
DIMENSION = 24
MAX_INPUTS = 2048
MAX_TOKENS = 8191
FIELDS = {"model", "input", "dimensions", "encoding_format", "user"}


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    digest = hashlib.shake_256(" ".join(text.split()).encode()).digest(2 * dimension)
    return [int.from_bytes(digest[i : i + 2], "big") / 1000 for i in range(0, 2 * dimension, 2)]


def embeddings(body: Json) -> Reply:
    """Answer as OpenAI documents it, the vectors in reverse order: only `index` counts."""
    if unknown := body.keys() - FIELDS:
        raise Refusal(400, f"Unrecognized request argument supplied: {sorted(unknown)[0]}")
    if body.get("model") != MODEL:
        raise Refusal(404, f"The model '{body.get('model')}' does not exist", "model_not_found")
    inputs = body.get("input")
    if not isinstance(inputs, list) or not 1 <= len(inputs) <= MAX_INPUTS:
        raise Refusal(400, f"'$.input' is invalid: 1 to {MAX_INPUTS} strings")
    dimension = body.get("dimensions", DIMENSION)
    if not isinstance(dimension, int) or not 1 <= dimension <= DIMENSION:
        raise Refusal(400, f"'dimensions' must be at most {DIMENSION}")
    for text in inputs:
        if not isinstance(text, str) or not text:
            raise Refusal(400, "'$.input' is invalid: an empty string")
        if len(text.split()) > MAX_TOKENS:
            raise Refusal(400, f"This model's maximum context length is {MAX_TOKENS} tokens")
    data = [
        {"object": "embedding", "index": index, "embedding": vector(text, dimension)}
        for index, text in enumerate(inputs)
    ]
    tokens = sum(len(text.split()) for text in inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply({"object": "list", "data": data[::-1], "model": MODEL, "usage": usage})


def fake_openai(key: str | None = None) -> FakeServer:
    server = FakeServer({"/v1/embeddings": embeddings})
    if key is not None:
        server.key = key
    return server


def serve_until_killed(port: int, log: Path, requests: int) -> None:
    lock, served = threading.Lock(), 0

    def logged(body: Json) -> Reply:
        nonlocal served
        with lock:
            if served == requests:
                os.kill(os.getpid(), signal.SIGKILL)
            served += 1
            with log.open("a") as lines:
                lines.write(json.dumps(body["input"]) + "\n")
        return embeddings(body)

    with serving(FakeServer({"/v1/embeddings": logged}), port) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    serve_until_killed(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
