"""All configuration, typed, read from the environment and lists.toml in one place.

A wrong value stops at start with one line that names the variable, the value and what is
allowed. Secrets come from the environment only and are left out of `repr` and of messages.
What does not live here: opening anything. Each value is checked by the module that will
use it (`check_source`, `check_store`, `check_url`), which opens nothing either.
"""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from mail_assets.encoding.profiles import PRECISIONS, PROFILES, PROVIDERS, check_provider
from mail_assets.encoding.remote import PRECISION, SCHEME, VARIABLES, read_remote
from mail_assets.mail.archive.mbox import DIALECTS
from mail_assets.openai.chat import ChatModel, read_chat
from mail_assets.openai.variables import VariableError, read_key
from mail_assets.postgres.database import Database
from mail_assets.sources.source import check_source
from mail_assets.store.objects import check_store
from mail_assets.vectors.open import check_url

#: The checkout: sql/, lists.toml and dagster.yaml stand beside the package.
PROJECT = Path(__file__).resolve().parents[2]

#: Older than any list named in this project. Changing it later orphans history.
FIRST_MONTH = "1995-01"

#: The files of a judged set, in the folder of MAIL_QUALITY_SET.
QUERIES, QRELS = "queries.jsonl", "qrels.tsv"

#: Text search configurations that PostgreSQL 18 ships.
LANGUAGES = (
    *("simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english"),
    *("estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian"),
    *("irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian"),
    *("russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)

_MONTH = re.compile(r"(19[7-9]\d|20\d\d)-(0[1-9]|1[0-2])")
#: A list's name is part of a partition key (no `|`, `,`, `[`, `]`), a path and a URL.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LIST_KEYS = {"source", "dialect", "language", "start"}
#: Up to the last @: a password may hold the characters that make its URL a wrong one.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]*@")
_SCHEME = re.compile(r"[a-z][a-z0-9+]*://")


class SettingsError(ValueError):
    """A wrong setting: one line with the variable, the value and what is allowed.

    Where a URL that must not hold credentials does, they are not repeated.
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        message = f"{name}={value!r}: {allowed}"
        for credentials in _CREDENTIALS.findall(repr(value)):
            message = message.replace(credentials, "***@")
        super().__init__(message)


@dataclass(frozen=True)
class MailList:
    """One mailing list of lists.toml.

    `source` is a folder, an https:// or an s3:// URL; `dialect` says how its mbox files
    quote; `language` is a PostgreSQL text search configuration; `start` is its first
    month, "YYYY-MM".
    """

    name: str
    source: str
    dialect: str
    language: str
    start: str


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; see README for what each variable means."""

    home: Path
    lists_file: Path
    first_month: str
    lists: Mapping[str, MailList]
    store: str
    vectors: str
    encoder: str
    precision: str
    provider: str = "cpu"
    model_dir: Path | None = None
    pg_dsn: str = field(default="", repr=False)
    dagster_url: str = field(default="", repr=False)
    http_auth: str = field(default="", repr=False)
    chat: ChatModel | None = None
    chat_key: str = field(default="", repr=False)
    quality_set: Path | None = None

    @property
    def database(self) -> Database:
        """The mail database, not opened."""
        return Database(self.home, self.pg_dsn)

    @property
    def languages(self) -> dict[str, str]:
        """The text search configuration of each list."""
        return {name: one.language for name, one in self.lists.items()}

    @property
    def dagster_home(self) -> Path:
        """Where Dagster keeps dagster.yaml and compute logs."""
        return self.home / "dagster"

    @property
    def model_cache(self) -> Path:
        """Where prepared ONNX files are kept, and model files that somebody put there: MODEL/."""
        return self.model_dir or self.home / "models"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check all settings.

    Raises:
        SettingsError: the first wrong value.
    """
    env = os.environ if environ is None else environ
    home = _path("MAIL_HOME", env.get("MAIL_HOME") or str(PROJECT / "var"))
    if os.path.lexists(home) and not home.is_dir():
        raise SettingsError("MAIL_HOME", str(home), "must be a directory")
    lists_file = _path("MAIL_LISTS", env.get("MAIL_LISTS") or str(PROJECT / "lists.toml"))
    first_month, lists = read_lists(lists_file)
    try:
        encoder, precision = _encoder(env)
        chat, chat_key = read_chat(env), read_key(env, "MAIL_CHAT_KEY")
    except VariableError as error:
        raise SettingsError(*error.args) from None
    models = env.get("MAIL_MODEL_DIR")
    return Settings(
        home=home,
        lists_file=lists_file,
        first_month=first_month,
        lists=lists,
        store=_place(env, "MAIL_STORE", "", str(home / "store"), check_store),
        vectors=_place(env, "MAIL_VECTORS", "lance:", f"lance:{home / 'vectors'}", check_url),
        encoder=encoder,
        precision=precision,
        provider=_provider(env, precision),
        model_dir=_path("MAIL_MODEL_DIR", models) if models else None,
        pg_dsn=_mail_dsn(env.get("MAIL_PG_DSN", "")),
        dagster_url=_dagster_url(env.get("DAGSTER_POSTGRES_URL", "")),
        http_auth=_http_auth(env.get("MAIL_HTTP_AUTH", "")),
        chat=chat,
        chat_key=chat_key,
        quality_set=_quality_set(env.get("MAIL_QUALITY_SET", "")),
    )


def read_lists(path: Path) -> tuple[str, dict[str, MailList]]:
    """Return `first_month` and the lists, sorted by name, of a lists.toml.

    A source without a scheme is a folder, relative to the file.

    Raises:
        SettingsError: the file is missing or wrong.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError("MAIL_LISTS", str(path), "no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError("MAIL_LISTS", str(path), f"not a readable TOML file: {error}") from None
    first_month = document.pop("first_month", FIRST_MONTH)
    where = f"MAIL_LISTS {path}"
    _require_month(f"{where} first_month", first_month)
    if not document:
        raise SettingsError("MAIL_LISTS", str(path), "names no list; add a [NAME] table")
    lists = {
        name: _mail_list(f"{where} [{name}]", name, table, path.parent, first_month)
        for name, table in sorted(document.items())
    }
    return first_month, lists


def _mail_list(where: str, name: str, table: Any, folder: Path, first_month: str) -> MailList:
    if not isinstance(table, dict):
        raise SettingsError(f"{where}", table, "must be a table with a source")
    if not _NAME.fullmatch(name):
        raise SettingsError(where, name, "a list's name is letters, digits, '.', '_' and '-'")
    if unknown := sorted(set(table) - _LIST_KEYS):
        raise SettingsError(f"{where} {unknown[0]}", table[unknown[0]], _allowed(_LIST_KEYS))
    for key, value in table.items():
        if not isinstance(value, str):
            raise SettingsError(f"{where} {key}", value, "must be a string")
    source = table.get("source", "")
    if "://" not in source and source:
        source = str(_path(f"{where} source", source, folder).resolve())
    try:
        check_source(source)
    except ValueError as error:
        raise SettingsError(f"{where} source", table.get("source", ""), str(error)) from None
    dialect = table.get("dialect", "plain")
    if dialect not in DIALECTS:
        raise SettingsError(f"{where} dialect", dialect, _allowed(DIALECTS))
    language = table.get("language", "english")
    if language not in LANGUAGES:
        raise SettingsError(f"{where} language", language, _allowed(LANGUAGES))
    start = table.get("start", first_month)
    _require_month(f"{where} start", start)
    if start < first_month:
        raise SettingsError(
            f"{where} start", start, f"must not be before first_month {first_month}"
        )
    return MailList(name, source, dialect, language, start)


def _require_month(name: str, value: object) -> None:
    if not isinstance(value, str) or not _MONTH.fullmatch(value):
        raise SettingsError(name, value, 'must be a month such as "1997-01"')


def _path(name: str, value: str, folder: Path | None = None) -> Path:
    """Return a path made absolute, from `folder` or from where this process stands."""
    try:
        return ((folder or Path()) / Path(value).expanduser()).absolute()
    except (RuntimeError, OSError) as error:  # no such user's home; no folder to stand in
        raise SettingsError(name, value, f"not a usable path: {error}") from None


def _place(
    env: Mapping[str, str], name: str, scheme: str, default: str, check: Callable[[str], None]
) -> str:
    """Return a URL, or `scheme` and a folder, absolute: processes started elsewhere share it."""
    value = env.get(name) or default
    try:
        check(value)
    except ValueError as error:
        raise SettingsError(name, value, str(error)) from None
    folder = value.removeprefix(scheme)
    if "://" in value or not value.startswith(scheme):
        return value
    return f"{scheme}{_path(name, folder)}"


def _encoder(env: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the encoder and its precision."""
    if not env.get("MAIL_ENCODER", "").startswith(SCHEME):
        if needless := [name for name in VARIABLES if env.get(name)]:
            raise SettingsError(needless[0], "...", f"is for MAIL_ENCODER={SCHEME}MODEL only")
        name = _one_of(env, "MAIL_ENCODER", "all-minilm-l6-v2", (*PROFILES, f"{SCHEME}MODEL"))
        return name, _one_of(env, "MAIL_PRECISION", "int8", PRECISIONS)
    if env.get("MAIL_PRECISION"):
        raise SettingsError("MAIL_PRECISION", env["MAIL_PRECISION"], "an endpoint has its own")
    return read_remote(env).name, PRECISION


def _one_of(env: Mapping[str, str], name: str, default: str, allowed: Collection[str]) -> str:
    value = env.get(name) or default
    if value not in allowed:
        raise SettingsError(name, value, _allowed(allowed))
    return value


def _provider(env: Mapping[str, str], precision: str) -> str:
    provider = _one_of(env, "MAIL_PROVIDER", "cpu", PROVIDERS)
    try:
        check_provider(provider, precision)
    except ValueError as error:
        raise SettingsError("MAIL_PROVIDER", provider, f"{error}; set MAIL_PRECISION") from None
    return provider


def _mail_dsn(value: str) -> str:
    if value.startswith(("postgresql+", "postgres+")):
        raise SettingsError(
            "MAIL_PG_DSN", _hidden(value), "psycopg takes postgresql://..., without a driver's name"
        )
    try:
        conninfo_to_dict(value)
    except ProgrammingError:  # its message may repeat the password
        raise SettingsError(
            "MAIL_PG_DSN", _hidden(value), "must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    return value


def _dagster_url(value: str) -> str:
    if value and not value.startswith("postgresql+psycopg2://"):
        raise SettingsError(
            "DAGSTER_POSTGRES_URL", _hidden(value), "must begin with postgresql+psycopg2://"
        )
    return value


def _http_auth(value: str) -> str:
    if value and ":" not in value:
        raise SettingsError("MAIL_HTTP_AUTH", "***", "must be USER:PASSWORD")
    return value


def _quality_set(value: str) -> Path | None:
    folder = _path("MAIL_QUALITY_SET", value) if value else None
    for name in (QUERIES, QRELS):
        if folder and not (folder / name).is_file():
            raise SettingsError(
                "MAIL_QUALITY_SET", value, f"must be a folder with {QUERIES} and {QRELS}: no {name}"
            )
    return folder


def _hidden(url: str) -> str:
    """Return what is safe to print of a URL: its scheme."""
    scheme = _SCHEME.match(url)
    return f"{scheme[0]}***" if scheme else "***"


def _allowed(values: Collection[str]) -> str:
    return f"allowed: {', '.join(sorted(values))}"
