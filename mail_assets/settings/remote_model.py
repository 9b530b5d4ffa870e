"""MAIL_ENCODER=openai:MODEL and the variables beside it: a model on a server."""

import re

from mail_assets.encoding.remote_encoder import (
    DEFAULT_URL,
    MAX_DIMENSION,
    REMOTE_SCHEME,
    SPECIAL_TOKENS,
    RemoteModel,
)
from mail_assets.openai.variables import Environ, VariableError, read_key, read_number, read_url
from mail_assets.text.chunk_sizes import MIN_ROOM
from mail_assets.text.document import MAX_HEADER_BYTES

MAX_PREFIX = 400  # bytes

#: Variables that are refused without a remote model. MAIL_ENCODER_KEY is not: it may be set.
REMOTE_VARIABLES = tuple(
    f"MAIL_ENCODER_{name}"
    for name in (
        "URL",
        "DIMENSION",
        "MAX_TOKENS",
        "QUERY_PREFIX",
        "DOCUMENT_PREFIX",
        "BATCH",
        "IN_FLIGHT",
    )
)


def read_remote_model(env: Environ) -> RemoteModel:
    """Return the model that MAIL_ENCODER and the variables beside it name.

    Raises:
        VariableError: the first that is wrong.
    """
    value = env.get("MAIL_ENCODER", "")
    model = value.removeprefix(REMOTE_SCHEME)
    if not re.fullmatch(r"[!-~]{1,200}", model) or "@" in model:
        raise VariableError("MAIL_ENCODER", value, "must be openai:MODEL, as the server calls it")
    url = read_url(env, "MAIL_ENCODER_URL", DEFAULT_URL)
    if not read_key(env, "MAIL_ENCODER_KEY") and url == DEFAULT_URL:
        raise VariableError("MAIL_ENCODER_KEY", "", f"{url} wants a key")
    document_prefix = _read_prefix(env, "MAIL_ENCODER_DOCUMENT_PREFIX")
    least = MAX_HEADER_BYTES + MIN_ROOM + SPECIAL_TOKENS + len(document_prefix.encode())
    dimension = read_number(env, "MAIL_ENCODER_DIMENSION", 0, 0, MAX_DIMENSION)
    return RemoteModel(
        model,
        url,
        dimension or None,
        max_tokens=read_number(env, "MAIL_ENCODER_MAX_TOKENS", 512, least, 8192),
        query_prefix=_read_prefix(env, "MAIL_ENCODER_QUERY_PREFIX"),
        document_prefix=document_prefix,
        batch=read_number(env, "MAIL_ENCODER_BATCH", 32, 1, 2048),
        in_flight=read_number(env, "MAIL_ENCODER_IN_FLIGHT", 4, 1, 64),
    )


def _read_prefix(env: Environ, name: str) -> str:
    """Return a prefix, with the space that it mostly ends in."""
    value = env.get(name, "")
    try:
        usable = len(value.encode()) <= MAX_PREFIX and "\0" not in value
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise VariableError(name, value, f"must be text of at most {MAX_PREFIX} bytes")
    return value
