"""The encoder that a name stands for: a profile on this machine, or a model on a server.

Names and fingerprints cost nothing; what opens a model or asks a server is imported and done
when it is called for. What does not live here: either kind (profiles.py, remote.py).
"""

from __future__ import annotations

import atexit
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mail_assets.encoding import profiles
from mail_assets.encoding.hub import HubSource
from mail_assets.encoding.model import verified
from mail_assets.encoding.profiles import ALL_MINILM_L6_V2, Profile, find_profile
from mail_assets.encoding.remote import SCHEME, RemoteModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from mail_assets.encoding.encoder import Encoder
    from mail_assets.encoding.endpoint import Endpoint

    AnyEncoder: TypeAlias = Encoder | Endpoint

#: The tokenizer of this profile measures chunks for models whose own is on a server.
RULER = ALL_MINILM_L6_V2


def find_model(name: str) -> Profile | RemoteModel:
    """What is known of an encoder; ValueError for an unknown name."""
    return RemoteModel.parse(name) if name.startswith(SCHEME) else find_profile(name)


def fingerprint(name: str, precision: str) -> str:
    """The fingerprint that the encoder will have; no file is opened and no server asked."""
    model = find_model(name)
    if isinstance(model, RemoteModel):
        return model.fingerprint()
    return profiles.fingerprint(name, precision)


def slug(name: str) -> str:
    """The encoder's name as it may stand in an index's name."""
    model = find_model(name)
    return model.slug if isinstance(model, RemoteModel) else name[:22]


def dimension(name: str) -> int:
    """The length of the encoder's vectors; where only the server knows, it is asked once."""
    model = find_model(name)
    return model.dimension or _endpoint(name).dimension


def check_model(name: str, models: Path | None = None) -> None:
    """Check that the model is installed, before long work that ends with it begins.

    A model of the Hub passes: it is fetched at its first use. So does one on a server, if the
    ruler is there.

    Raises:
        ModelFileError: it is not, or was altered; with the command that installs it.
    """
    profile = RULER if name.startswith(SCHEME) else find_profile(name, models)
    if not isinstance(profile.source, HubSource):
        verified(profile.source, profile.files.tokenizer)


def open_tokenizer(name: str, models: Path | None = None) -> Tokenizer:
    """The tokenizer that chunks are measured with."""
    from mail_assets.encoding.encoder import load_tokenizer

    return load_tokenizer(RULER if name.startswith(SCHEME) else find_profile(name, models))


def open_encoder(name: str, precision: str, models: Path, provider: str = "cpu") -> AnyEncoder:
    """The encoder itself. See load_encoder and load_endpoint for what may go wrong."""
    if name.startswith(SCHEME):
        return _endpoint(name)
    from mail_assets.encoding.encoder import load_encoder

    return load_encoder(name, precision, models, provider=provider)


@functools.cache
def _endpoint(name: str) -> Endpoint:
    """Open an endpoint once a process; its key is nowhere but in the environment."""
    from mail_assets.encoding.encoder import load_tokenizer
    from mail_assets.encoding.endpoint import load_endpoint

    key = os.environ.get("MAIL_ENCODER_KEY", "").strip()
    endpoint = load_endpoint(RemoteModel.parse(name), key, load_tokenizer(RULER))
    atexit.register(endpoint.close)
    return endpoint
