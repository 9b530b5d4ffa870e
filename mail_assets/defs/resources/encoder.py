"""The encoder that turns text into vectors; it is opened once, when it is first used."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import numpy as np
import numpy.typing as npt
from pydantic import Field
from tokenizers import Tokenizer

from mail_assets.encoding.local_model import LocalModel
from mail_assets.encoding.open import (
    compute_fingerprint,
    open_encoder,
    open_tokenizer,
    resolve_model,
)
from mail_assets.encoding.remote_encoder import RemoteEncoder
from mail_assets.encoding.remote_model import RemoteModel

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


class EncoderResource(dg.ConfigurableResource):
    """A model profile at a precision, or a model on a server.

    The fingerprint and the tokenizer are cheap; the first text opens the model or the connection.
    An endpoint's key stays in the environment.
    """

    name: str = Field(description="MAIL_ENCODER: the profile's name, or openai:MODEL@URL")
    precision: str = Field(description="MAIL_PRECISION: int8, fp32, static; an endpoint's: served")
    provider: str = Field(default="cpu", description="MAIL_PROVIDER: cpu, cuda or openvino")
    cache: str = Field(description="MAIL_MODEL_DIR: model folders and prepared ONNX files")

    @property
    def model(self) -> LocalModel | RemoteModel:
        """Return the model: dimension, chunk sizes, prefixes."""
        return resolve_model(self.name)

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what a vector means."""
        return compute_fingerprint(self.name, self.precision)

    @property
    def dimension(self) -> int:
        """Return the length of the vectors; a server is waited for as it is for vectors."""
        return self.model.dimension or self.encode_documents([]).shape[1]

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without truncation or padding."""
        return _tokenizer(self.name, self.cache)

    @property
    def tokens_used(self) -> int:
        """Return the tokens that an endpoint has counted in this process; 0 for a local model."""
        if isinstance(self.model, LocalModel):
            return 0
        encoder = _encoder(self.name, self.precision, self.cache, self.provider)
        return encoder.tokens_used if isinstance(encoder, RemoteEncoder) else 0

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Keep other encoders of this machine waiting; a model on a server waits for none."""
        encoder = _encoder(self.name, self.precision, self.cache, self.provider)
        return encoder.wait_turn(report_wait)

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector per text, shape (n, dimension)."""
        encoder = _encoder(self.name, self.precision, self.cache, self.provider)
        return encoder.encode_documents(texts)


@functools.cache
def _tokenizer(name: str, cache: str) -> Tokenizer:
    return open_tokenizer(name, Path(cache))


@functools.cache
def _encoder(name: str, precision: str, cache: str, provider: str) -> "Encoder":
    """Load a model once per process: one run has many steps, and tests make many runs."""
    return open_encoder(name, precision, Path(cache), provider)
