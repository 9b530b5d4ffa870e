"""A model behind an OpenAI-compatible server: what must be known of it, and its fingerprint.

A remote model is written as one name that holds all of it but the key, so that the name can be
passed wherever a local model's name can:

    openai:MODEL@URL
    openai:MODEL@URL?dimension=512&max_tokens=2048&query_prefix=...
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import CHUNKER_VERSION

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
