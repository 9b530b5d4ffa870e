"""The environment variables with rules of their own: each read and checked by one function.

Nothing is opened. A value is checked by the module that will use it (`check_store`,
`check_bucket_url`, `check_words_url`).
An empty variable counts as one that is not set.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from mail_assets.encoding.local_encoder import count_physical_cores
from mail_assets.encoding.models import (
    DEFAULT_PRECISION,
    LOCAL_MODELS,
    PRECISIONS,
    PROVIDERS,
    check_provider,
)
from mail_assets.encoding.remote_encoder import REMOTE_PRECISION, REMOTE_SCHEME
from mail_assets.evaluation.judged import QRELS, QUERIES
from mail_assets.openai.variables import Environ
from mail_assets.settings.errors import SettingsError, hide_secrets, one_of
from mail_assets.settings.paths import absolute_path, check_folder, local_folder
from mail_assets.settings.remote_model import REMOTE_VARIABLES, read_remote_model
from mail_assets.store.open import check_store, store_folder
from mail_assets.tables.forget_keys import parse_key
from mail_assets.vectors.open import check_bucket_url
from mail_assets.words.open import check_words_url

MAX_JOBS = 256


def read_store(env: Environ, home: Path) -> str:
    """Return MAIL_STORE: a URL or an absolute folder."""
    store = _read_location(env, "MAIL_STORE", "", str(home / "store"), check_store)
    if folder := store_folder(store):
        check_folder("MAIL_STORE", env.get("MAIL_STORE") or store, folder)
    return store


def read_vectors(env: Environ, home: Path) -> str:
    """Return MAIL_VECTORS: a URL, or `lance:` and an absolute folder."""
    return _read_location(
        env, "MAIL_VECTORS", "lance:", f"lance:{home / 'vectors'}", check_bucket_url
    )


def read_words(env: Environ, home: Path) -> str:
    """Return MAIL_WORDS: `lance:` and an absolute folder, or a URL.

    Raises:
        SettingsError: it is none, or the place of MAIL_VECTORS: each has a live index of its own.
    """
    url = _read_location(env, "MAIL_WORDS", "lance:", f"lance:{home / 'words'}", check_words_url)
    if url == read_vectors(env, home):
        raise SettingsError("MAIL_WORDS", url, "must be another place than MAIL_VECTORS")
    return url


def read_encoder(env: Environ) -> tuple[str, str]:
    """Return the name of the encoder and its precision, from all MAIL_ENCODER variables.

    Raises:
        VariableError: a wrong variable of an endpoint.
    """
    if not env.get("MAIL_ENCODER", "").startswith(REMOTE_SCHEME):
        if needless := [name for name in REMOTE_VARIABLES if env.get(name)]:
            raise SettingsError(
                needless[0], "...", f"is for MAIL_ENCODER={REMOTE_SCHEME}MODEL only"
            )
        name = read_choice(
            env, "MAIL_ENCODER", "all-minilm-l6-v2", (*LOCAL_MODELS, f"{REMOTE_SCHEME}MODEL")
        )
        return name, read_choice(env, "MAIL_PRECISION", DEFAULT_PRECISION, PRECISIONS)
    if env.get("MAIL_PRECISION"):
        raise SettingsError("MAIL_PRECISION", env["MAIL_PRECISION"], "an endpoint has its own")
    return read_remote_model(env).name, REMOTE_PRECISION


def read_provider(env: Environ, precision: str) -> str:
    """Return MAIL_PROVIDER, which must be able to compute the precision."""
    provider = read_choice(env, "MAIL_PROVIDER", "cpu", PROVIDERS)
    try:
        check_provider(provider, precision)
    except ValueError as error:
        raise SettingsError("MAIL_PROVIDER", provider, f"{error}; set MAIL_PRECISION") from None
    return provider


def read_jobs(env: Environ) -> int:
    """Return MAIL_JOBS: the processes that compute for a step; by default one a physical core.

    Raises:
        SettingsError: it is no number from 1.
    """
    value = env.get("MAIL_JOBS")
    if not value:
        return count_physical_cores()
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= MAX_JOBS:
        raise SettingsError("MAIL_JOBS", value, f"must be a number from 1 to {MAX_JOBS}")
    return int(value)


def read_mail_dsn(env: Environ) -> str:
    """Return MAIL_PG_DSN, which may be empty."""
    dsn = env.get("MAIL_PG_DSN", "")
    if dsn.startswith(("postgresql+", "postgres+")):
        raise SettingsError(
            "MAIL_PG_DSN",
            hide_secrets(dsn),
            "psycopg takes postgresql://..., without a driver's name",
        )
    try:
        conninfo_to_dict(dsn)
    except ProgrammingError:  # its message may repeat the password
        raise SettingsError(
            "MAIL_PG_DSN",
            hide_secrets(dsn),
            "must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        ) from None
    return dsn


def read_http_auth(env: Environ) -> str:
    """Return MAIL_HTTP_AUTH, which may be empty."""
    value = env.get("MAIL_HTTP_AUTH", "")
    if value and ":" not in value:
        raise SettingsError("MAIL_HTTP_AUTH", "***", "must be USER:PASSWORD")
    return value


def read_forget_key(env: Environ) -> str:
    """Return MAIL_FORGET_KEY, which may be empty: then the key is in a file."""
    value = env.get("MAIL_FORGET_KEY", "")
    try:
        if value:
            parse_key(value)
    except ValueError as error:
        raise SettingsError("MAIL_FORGET_KEY", "***", str(error)) from None
    return value


def read_folder(env: Environ, name: str) -> Path | None:
    """Return a folder that need not exist, or None.

    Raises:
        SettingsError: it is no directory.
    """
    value = env.get(name)
    return local_folder(name, value) if value else None


def read_quality_set(env: Environ) -> Path | None:
    """Return MAIL_QUALITY_SET: a folder with both files of a judged set, or None."""
    folder = read_folder(env, "MAIL_QUALITY_SET")
    for name in (QUERIES, QRELS):
        if folder and not (folder / name).is_file():
            raise SettingsError(
                "MAIL_QUALITY_SET",
                env["MAIL_QUALITY_SET"],
                f"must be a folder with {QUERIES} and {QRELS}: no {name}",
            )
    return folder


def read_choice(env: Environ, name: str, default: str, allowed: Collection[str]) -> str:
    """Return a variable that allows some values only."""
    value = env.get(name) or default
    if value not in allowed:
        raise SettingsError(name, value, one_of(allowed))
    return value


def _read_location(
    env: Environ, name: str, scheme: str, default: str, check: Callable[[str], None]
) -> str:
    """Return a URL, or `scheme` and an absolute folder: other processes have other directories."""
    value = env.get(name) or default
    try:
        check(value)
    except ValueError as error:
        raise SettingsError(name, value, str(error)) from None
    if "://" in value or not value.startswith(scheme):
        return value
    folder = absolute_path(name, value.removeprefix(scheme))
    check_folder(name, value, folder)
    return f"{scheme}{folder}"
