"""Open an encoder by its name: a model on this machine or on a server.

Modules that load a model or send requests are imported only when they are needed, so that names and
fingerprints are cheap.
"""

from __future__ import annotations

import atexit
import functools
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mail_assets.encoding.model_files import HubSource, verify_file
from mail_assets.encoding.models import (
    ALL_MINILM_L6_V2,
    REMOTE_SCHEME,
    STATIC,
    LocalModel,
    RemoteModel,
    find_local_model,
    resolve_model,
)
from mail_assets.environment import VARIABLES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from mail_assets.encoding.local_encoder import LocalEncoder
    from mail_assets.encoding.remote_encoder import RemoteEncoder
    from mail_assets.encoding.static_encoder import StaticEncoder

    Encoder: TypeAlias = LocalEncoder | StaticEncoder | RemoteEncoder

#: The model whose tokenizer (the reference tokenizer) measures the chunks of remote models.
REFERENCE_MODEL = ALL_MINILM_L6_V2


def find_dimension(name: str) -> int:
    """Return the dimension of the encoder's vectors; ask the server once if it is not set."""
    return resolve_model(name).dimension or _open_remote(name).dimension


def check_model(name: str, models: Path | None = None) -> None:
    """Check that the model is installed, before long work that needs it later.

    A model of the Hub passes, because its first use downloads it. A model on a server passes if the
    reference tokenizer is installed.

    Raises:
        ModelFileError: a file is missing or altered; the message has the command to install it.
    """
    model = _tokenizer_model(name, models)
    if not isinstance(model.source, HubSource):
        verify_file(model.source, model.files.tokenizer)


def open_tokenizer(name: str, models: Path | None = None) -> Tokenizer:
    """Open the tokenizer that measures chunks; `models` is the folder of model files."""
    from mail_assets.encoding.checkpoint import load_tokenizer

    return load_tokenizer(_tokenizer_model(name, models))


def open_encoder(name: str, precision: str, models: Path, provider: str = "cpu") -> Encoder:
    """Open an encoder, its files in `models`; raises as open_local_encoder or RemoteEncoder."""
    if name.startswith(REMOTE_SCHEME):
        return _open_remote(name)
    if precision == STATIC:
        from mail_assets.encoding.static_encoder import open_static_encoder

        return open_static_encoder(name, models)
    from mail_assets.encoding.local_encoder import open_local_encoder

    return open_local_encoder(name, precision, models, provider=provider)


def _tokenizer_model(name: str, models: Path | None) -> LocalModel:
    return REFERENCE_MODEL if name.startswith(REMOTE_SCHEME) else find_local_model(name, models)


@functools.cache
def _open_remote(name: str) -> RemoteEncoder:
    # Cached: one encoder per process. The key is not part of the name.
    from mail_assets.encoding.checkpoint import load_tokenizer
    from mail_assets.encoding.remote_encoder import open_remote_encoder

    key = VARIABLES.get("MAIL_ENCODER_KEY", "").strip()
    encoder = open_remote_encoder(RemoteModel.parse(name), key, load_tokenizer(REFERENCE_MODEL))
    atexit.register(encoder.close)
    return encoder
