"""Open an encoder by its name: of a model on this machine, or of one on a server.

Names and fingerprints cost nothing: what opens a model or asks a server is imported when called.
"""

from __future__ import annotations

import atexit
import functools
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mail_assets.encoding.model_files import HubSource, verify_file
from mail_assets.encoding.models import ALL_MINILM_L6_V2, STATIC, LocalModel, find_local_model
from mail_assets.encoding.remote_encoder import REMOTE_SCHEME, RemoteModel
from mail_assets.environment import VARIABLES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from mail_assets.encoding.local_encoder import LocalEncoder
    from mail_assets.encoding.remote_encoder import RemoteEncoder
    from mail_assets.encoding.static_encoder import StaticEncoder

    Encoder: TypeAlias = LocalEncoder | StaticEncoder | RemoteEncoder

#: Its tokenizer, the reference tokenizer, measures chunks for remote models.
REFERENCE_MODEL = ALL_MINILM_L6_V2


def resolve_model(name: str) -> LocalModel | RemoteModel:
    """The model of that name; ValueError for an unknown name."""
    return RemoteModel.parse(name) if name.startswith(REMOTE_SCHEME) else find_local_model(name)


def compute_fingerprint(name: str, precision: str) -> str:
    """The fingerprint that the encoder will have; no file is opened and no server asked.

    ValueError for an unknown name or precision.
    """
    return resolve_model(name).fingerprint(precision)


def short_name(name: str) -> str:
    """The model's name as it is part of an index's name, at most 22 characters."""
    return resolve_model(name).short_name


def find_dimension(name: str) -> int:
    """The length of the encoder's vectors; where only the server knows, it is asked once."""
    return resolve_model(name).dimension or _open_remote(name).dimension


def check_model(name: str, models: Path | None = None) -> None:
    """Check that the model is installed, before long work that ends with it begins.

    A model of the Hub passes: it is fetched at its first use. So does one on a server, if the
    reference tokenizer is there.

    Raises:
        ModelFileError: it is not, or was altered; with the command that installs it.
    """
    model = _tokenizer_model(name, models)
    if not isinstance(model.source, HubSource):
        verify_file(model.source, model.files.tokenizer)


def open_tokenizer(name: str, models: Path | None = None) -> Tokenizer:
    """The tokenizer that chunks are measured with; `models` is the folder of model files."""
    from mail_assets.encoding.tokenizer import load_tokenizer

    return load_tokenizer(_tokenizer_model(name, models))


def open_encoder(name: str, precision: str, models: Path, provider: str = "cpu") -> Encoder:
    """The encoder itself; `models` is the folder of model files and prepared graphs.

    Errors are those of open_local_encoder and RemoteEncoder.
    """
    if name.startswith(REMOTE_SCHEME):
        return _open_remote(name)
    if precision == STATIC:
        from mail_assets.encoding.static_encoder import open_static_encoder

        return open_static_encoder(name, models)
    from mail_assets.encoding.local_encoder import open_local_encoder

    return open_local_encoder(name, precision, models, provider=provider)


def _tokenizer_model(name: str, models: Path | None) -> LocalModel:
    """The local model whose tokenizer measures the encoder's chunks."""
    return REFERENCE_MODEL if name.startswith(REMOTE_SCHEME) else find_local_model(name, models)


@functools.cache
def _open_remote(name: str) -> RemoteEncoder:
    """Open a connection once a process; its key is nowhere but in the environment."""
    from mail_assets.encoding.remote_encoder import open_remote_encoder
    from mail_assets.encoding.tokenizer import load_tokenizer

    key = VARIABLES.get("MAIL_ENCODER_KEY", "").strip()
    encoder = open_remote_encoder(RemoteModel.parse(name), key, load_tokenizer(REFERENCE_MODEL))
    atexit.register(encoder.close)
    return encoder
