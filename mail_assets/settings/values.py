"""The environment variables with rules of their own: each read and checked by one function.

Nothing is opened. A value is checked by the module that will use it (`check_store`,
`check_bucket_url`, `check_words_url`).
An empty variable counts as one that is not set.

[errors] The error for a wrong setting, which never repeats a secret.

[paths] Paths in settings: made absolute, with defaults for a checkout and for an installed wheel.

[remote_model] MAIL_ENCODER=openai:MODEL and the variables beside it: a model on a server.

[numbers] Variables that are whole numbers.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from mail_assets.checkout import find_checkout
from mail_assets.encoding.models import (
    DEFAULT_PRECISION,
    LOCAL_MODELS,
    PRECISIONS,
    PROVIDERS,
    check_provider,
)
from mail_assets.encoding.remote_encoder import (
    DEFAULT_URL,
    MAX_DIMENSION,
    REMOTE_PRECISION,
    REMOTE_SCHEME,
    SPECIAL_TOKENS,
    RemoteModel,
)
from mail_assets.errors import WrongInputError
from mail_assets.evaluation.judged import QRELS, QUERIES
from mail_assets.openai.variables import Environ, VariableError, read_key, read_number, read_url
from mail_assets.processes.machine import count_physical_cores
from mail_assets.store.open import check_store, store_folder
from mail_assets.tables.removals import parse_key
from mail_assets.text.chunking import MAX_HEADER_BYTES, MIN_ROOM
from mail_assets.vectors.open import check_bucket_url
from mail_assets.words.open import check_words_url

#: Up to the last @: a password may contain the characters that make its URL invalid.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]*@")
_SCHEME = re.compile(r"[a-z][a-z0-9+]*://")


class SettingsError(WrongInputError):
    """A wrong setting: one line with its name, its value and what is allowed.

    Credentials in a URL are replaced by `***`.
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        message = f"{name}={value!r}: {allowed}"
        for credentials in _CREDENTIALS.findall(repr(value)):
            message = message.replace(credentials, "***@")
        super().__init__(message)


def hide_secrets(url: str) -> str:
    """Return the part of a URL or DSN that is safe to print: its scheme, then `***`."""
    scheme = _SCHEME.match(url)
    return f"{scheme[0]}***" if scheme else "***"


def one_of(values: Collection[str]) -> str:
    """Return the last part of an error's message that lists the allowed values."""
    return f"allowed: {', '.join(sorted(values))}"


def absolute_path(name: str, value: str, folder: Path | None = None) -> Path:
    """Return an absolute path; `value` is relative to `folder`, or to the current directory.

    Raises:
        SettingsError: "~user" names no user, HOME no folder, or there is no current directory.
    """
    if Path(value).parts[:1] == ("~",) and not os.environ.get("HOME", "/").startswith("/"):
        raise SettingsError(name, value, "HOME is no absolute path: set it, or write no ~ here")
    try:
        return ((folder or Path()) / Path(value).expanduser()).absolute()
    except (RuntimeError, OSError) as error:
        raise SettingsError(name, value, f"not a usable path: {error}") from None


def local_folder(name: str, value: str) -> Path:
    """Return the absolute path of a folder, which need not exist.

    Raises:
        SettingsError: the path is not usable, or not that of a folder.
    """
    folder = absolute_path(name, value)
    check_folder(name, value, folder)
    return folder


def check_folder(name: str, value: str, folder: Path) -> None:
    """Check that a setting's folder is one, or can be made.

    Raises:
        SettingsError: it, or the nearest that there is above it, is no directory.
    """
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not there.is_dir():
        which = "this" if there == folder else str(there)
        raise SettingsError(name, value, f"must be a directory, {which} is none; set another path")


def read_home(env: Mapping[str, str]) -> Path:
    """Return MAIL_HOME; default: var/ in a checkout, $XDG_DATA_HOME/mail-assets elsewhere.

    Raises:
        SettingsError: it is no directory. It need not exist.
    """
    return local_folder("MAIL_HOME", env.get("MAIL_HOME") or str(_default_home(env)))


def read_lists_path(env: Mapping[str, str]) -> Path:
    """Return MAIL_LISTS, which need not exist; default: the checkout's lists.toml.

    Outside a checkout: ./lists.toml if there is one, else that of $XDG_CONFIG_HOME/mail-assets.

    Raises:
        SettingsError: it is not a usable path.
    """
    if value := env.get("MAIL_LISTS"):
        return absolute_path("MAIL_LISTS", value)
    if checkout := find_checkout():
        return checkout / "lists.toml"
    here = absolute_path("MAIL_LISTS", "lists.toml")
    return here if here.is_file() else _xdg_folder(env, "XDG_CONFIG_HOME", "~/.config") / here.name


def _default_home(env: Mapping[str, str]) -> Path:
    if checkout := find_checkout():
        return checkout / "var"
    return _xdg_folder(env, "XDG_DATA_HOME", "~/.local/share")


def _xdg_folder(env: Mapping[str, str], name: str, default: str) -> Path:
    """Return our folder below a base directory of the XDG specification (0.8).

    The specification says that a relative base is ignored.
    """
    base = env.get(name, "")
    return absolute_path(name, base if base.startswith("/") else default) / "mail-assets"


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


#: Where nothing else bounds a number.
MOST = 99_999


def read_count(env: Mapping[str, str], name: str, default: int, unit: str, most: int = MOST) -> int:
    """Return a variable from 0 to `most`; `unit` says in an error of what, and what 0 means.

    Raises:
        SettingsError: it is written otherwise.
    """
    value = env.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", value) or int(value) > most:
        raise SettingsError(name, value, f"must be 0 to {most} {unit}")
    return int(value)
