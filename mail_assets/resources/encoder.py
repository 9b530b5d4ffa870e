"""The encoder that turns text into vectors; its model is loaded once, when it is first used."""

import functools
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import numpy as np
import numpy.typing as npt
from pydantic import Field
from tokenizers import Tokenizer

from mail_assets.encoding.encoder import Encoder, load_encoder, load_tokenizer
from mail_assets.encoding.profiles import PROFILES, Profile, find_profile, fingerprint


class EncoderResource(dg.ConfigurableResource):
    """A model profile at a precision.

    The fingerprint and the tokenizer are cheap; the ONNX session is opened by the first text.
    """

    name: str = Field(description="MAIL_ENCODER: the profile's name")
    precision: str = Field(description="MAIL_PRECISION: int8 or fp32")
    provider: str = Field(default="cpu", description="MAIL_PROVIDER: cpu, cuda or openvino")
    cache: str = Field(description="MAIL_MODEL_DIR: model folders and prepared ONNX files")

    @property
    def profile(self) -> Profile:
        """Return the profile: dimension, chunk sizes, prefixes."""
        return PROFILES[self.name]

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what a vector means."""
        return fingerprint(self.name, self.precision)

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without truncation or padding."""
        return _tokenizer(self.name, self.cache)

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector per text, shape (n, dimension)."""
        encoder = _encoder(self.name, self.precision, self.cache, self.provider)
        return encoder.encode_documents(texts)


@functools.cache
def _tokenizer(name: str, cache: str) -> Tokenizer:
    return load_tokenizer(find_profile(name, Path(cache)))


@functools.cache
def _encoder(name: str, precision: str, cache: str, provider: str) -> Encoder:
    """Load a model once per process: one run has many steps, and tests make many runs."""
    return load_encoder(name, precision, Path(cache), provider=provider)
