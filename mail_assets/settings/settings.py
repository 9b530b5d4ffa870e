"""Read all settings of the package from the environment and lists.toml, typed and checked.

A wrong value stops the process at its start, with one line that names the variable, the value and
the rule. Secrets come from the environment only, and are not in `repr` or messages. This module has
the rules over several variables; `values` has the rules for single ones.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mail_assets.encoding.models import (
    LOCAL_MODELS,
    REMOTE_PRECISION,
    REMOTE_SCHEME,
    SPECIAL_TOKENS,
    RemoteModel,
    check_provider,
)
from mail_assets.environment import VARIABLES, read_secret_files
from mail_assets.files import find_checkout
from mail_assets.settings import variables
from mail_assets.settings.lists import MailingList, Repository, read_lists
from mail_assets.settings.values import (
    Environ,
    Network,
    SettingsError,
    Variable,
    absolute_path,
    choice,
    folder,
    whole_number,
)
from mail_assets.settings.variables import (
    ALLOW,
    CHAT,
    EXTRACTIVE,
    HIDDEN,
    REFUSE,
    SUMMARY_TOKENS,
)

if TYPE_CHECKING:
    from mail_assets.openai import ChatModel
    from mail_assets.postgres.database import Database
    from mail_assets.search.open import SearchSettings
    from mail_assets.tables.removals import KeySource
    from mail_assets.web.limits import Allowance, Cost
    from mail_assets.workspace import ListDefaults, Log, Workspace

#: Bounds of the search processes if MAIL_WEB_PROCESSES is not set: at least two, so that a slow
#: search does not block all others; at most four, because each takes 0.2 to 0.3 GB.
FEWEST_PROCESSES, MOST_PROCESSES = 2, 4


class SummarySettings(NamedTuple):
    """The maker of summaries, and the limit of a chat model's tokens per run."""

    maker: str = EXTRACTIVE
    tokens: int = SUMMARY_TOKENS


_DEFAULT_SUMMARIES = SummarySettings()


@dataclass(frozen=True)
class Settings:
    """All settings; docs/settings.md describes each variable."""

    home: Path
    lists_file: Path
    first_month: str
    lists: Mapping[str, MailingList]
    store: str
    vectors: str
    words: str
    encoder: str
    precision: str
    repositories: Mapping[str, Repository] = field(default_factory=dict)
    last_month: str | None = None
    provider: str = "cpu"
    model_dir: Path | None = None
    dagster_dir: Path | None = None
    pg_dsn: str = field(default="", repr=False)
    dagster_url: str = field(default="", repr=False)
    http_auth: str = field(default="", repr=False)
    chat: "ChatModel | None" = None
    chat_key: str = field(default="", repr=False)
    summaries: SummarySettings = _DEFAULT_SUMMARIES
    quality_set: Path | None = None
    alert_url: str = field(default="", repr=False)
    ui_url: str = ""
    owners: tuple[str, ...] = ()
    fresh_hours: int = variables.FRESH_HOURS.default
    keep_archives: int = variables.KEEP_ARCHIVES.default
    given_forget_key: str = field(default="", repr=False)
    standby_minutes: int = variables.STANDBY_MINUTES.default
    web_addresses: str = HIDDEN
    web_title: str = ""
    web_about: str = ""
    web_hosts: tuple[str, ...] = ()
    web_proxies: tuple[Network, ...] = ()
    #: Requests per minute by the name of their cost; only limits that are set.
    web_rates: Mapping[str, int] = field(default_factory=dict)
    web_url: str = ""
    #: None: one for each physical core, within bounds.
    given_web_processes: int | None = 0
    given_jobs: int | None = 1

    @property
    def database(self) -> "Database":
        """The mail database, not opened yet."""
        from mail_assets.postgres.database import Database

        return Database(self.home, self.pg_dsn)

    @contextmanager
    def open_workspace(self, role: str, log: "Log" = lambda line: None) -> "Iterator[Workspace]":
        """Open the mail database and the store for work in this process."""
        from mail_assets.store.open import open_store
        from mail_assets.workspace import Workspace

        with self.database.connect(role) as connection:
            yield Workspace(connection, open_store(self.store), log, self.forget_key)

    @property
    def search(self) -> "SearchSettings":
        """Settings of a searcher."""
        from mail_assets.search.open import SearchSettings

        return SearchSettings(
            self.database,
            self.vectors,
            self.words,
            self.encoder,
            self.precision,
            self.model_cache,
            self.languages,
        )

    @property
    def forget_key(self) -> "KeySource":
        """Location of the key for digests of forgotten mail; the key is not read."""
        from mail_assets.tables.removals import find_key

        return find_key(self.home, self.pg_dsn, self.given_forget_key)

    @property
    def languages(self) -> dict[str, str]:
        """Text search configuration of each published list."""
        return {name: one.language for name, one in self.lists.items() if one.published}

    @property
    def list_defaults(self) -> "dict[str, ListDefaults]":
        """Language, default charset and publication of each list."""
        return {name: one.defaults for name, one in self.lists.items()}

    @property
    def dagster_home(self) -> Path:
        """Folder of dagster.yaml and compute logs: DAGSTER_HOME, else below `home`."""
        return self.dagster_dir or self.home / "dagster"

    @property
    def source_cache(self) -> Path:
        """Folder with the mirrors and lists of months of sources; it may be deleted."""
        return self.home / "cache" / "sources"

    @property
    def model_cache(self) -> Path:
        """Folder of prepared ONNX files, and of model files put there by hand, in MODEL/."""
        return self.model_dir or self.home / "models"

    @cached_property
    def jobs(self) -> int:
        """Number of worker processes of a step."""
        return self.given_jobs or _count_cores()

    @cached_property
    def web_processes(self) -> int:
        """Number of search processes of `serve`; 0: searches run in threads of the server."""
        if self.given_web_processes is not None:
            return self.given_web_processes
        return max(FEWEST_PROCESSES, min(MOST_PROCESSES, _count_cores()))

    @property
    def web_limits(self) -> "Mapping[Cost, Allowance]":
        """Limits of requests per client, by their cost."""
        from mail_assets.web.limits import DEFAULT_ALLOWANCES, Allowance, Cost

        set_ones = {
            Cost(name): Allowance(most, DEFAULT_ALLOWANCES[Cost(name)].at_once, most)
            for name, most in self.web_rates.items()
        }
        return {**DEFAULT_ALLOWANCES, **set_ones}


def _count_cores() -> int:
    from mail_assets.processes.machine import count_physical_cores

    return count_physical_cores()


def _read_environment() -> Environ:
    if folder := variables.SECRETS.read(VARIABLES):
        names = [row.name for section in variables.TABLE for row in section.rows]
        try:
            read_secret_files(folder, [*names, *variables.OF_LIBRARIES])
        except (OSError, UnicodeDecodeError) as error:
            name, rule = variables.SECRETS.name, f"cannot be read: {error}"
            raise SettingsError(name, str(folder), rule) from None
    return VARIABLES


def load_settings(environ: Environ | None = None) -> Settings:
    """Read and check all settings."""
    env = _read_environment() if environ is None else environ
    _check_local_state(env, variables.SHARED)
    home = read_home(env)
    lists_file = read_lists_path(env)
    first_month, last_month, lists, repositories = read_lists(lists_file)
    encoder, precision = _read_encoder(env)
    chat = _read_chat(env)
    vectors = variables.VECTORS.read(env) or f"lance:{_default_folder(variables.VECTORS, home)}"
    return Settings(
        home=home,
        lists_file=lists_file,
        first_month=first_month,
        lists=lists,
        repositories=repositories,
        last_month=last_month,
        store=variables.STORE.read(env) or _default_folder(variables.STORE, home),
        vectors=vectors,
        words=_read_words(env, home, vectors),
        encoder=encoder,
        precision=precision,
        provider=_read_provider(env, precision),
        chat=chat,
        summaries=_read_summaries(env, chat),
        given_forget_key=variables.FORGET_KEY.read(env),
        web_rates={
            cost: row.read(env) for cost, row in variables.WEB_RATES.items() if env.get(row.name)
        },
        given_web_processes=variables.WEB_PROCESSES.read(env),
        given_jobs=variables.JOBS.read(env),
        **_read_alone(env),
    )


#: Fields whose value depends on more than the row of the same name.
_JOINED = {
    *("home", "lists", "store", "vectors", "words", "encoder", "precision", "provider"),
    "summaries",
}


def _read_alone(env: Environ) -> dict[str, Any]:
    """Return the fields whose value comes from the row of the same name."""
    rows = {one.name: getattr(variables, one.name.upper(), None) for one in fields(Settings)}
    return {
        name: row.read(env)
        for name, row in rows.items()
        if isinstance(row, Variable) and name not in _JOINED
    }


@dataclass(frozen=True)
class DagsterSettings:
    """Location of Dagster's runs and events.

    `postgres_url` is DAGSTER_POSTGRES_URL; empty: the embedded server of `home` (MAIL_HOME).
    """

    home: Path
    postgres_url: str = field(repr=False)


def load_dagster_settings(environ: Environ | None = None) -> DagsterSettings:
    """Read and check only MAIL_LOCAL_STATE, MAIL_HOME and DAGSTER_POSTGRES_URL.

    Every Dagster process opens its storage first. A mistake in lists.toml must be an error of the
    code location, and must not stop the webserver and the daemon.
    """
    env = _read_environment() if environ is None else environ
    _check_local_state(env, [variables.DAGSTER_URL])
    return DagsterSettings(read_home(env), variables.DAGSTER_URL.read(env))


def list_set(environ: Environ | None = None) -> dict[str, str]:
    """Return the variables that are set, without shared ones; secrets are `***`."""
    env = VARIABLES if environ is None else environ
    rows = [row for section in variables.TABLE if not section.shared for row in section.rows]
    return {row.name: "***" if row.secret else env[row.name] for row in rows if env.get(row.name)}


def shows_colour(environ: Environ | None = None) -> bool:
    """Return whether a terminal may show colours and a live display: https://no-color.org."""
    env = VARIABLES if environ is None else environ
    return not variables.NO_COLOR.read(env) and variables.TERM.read(env) not in ("dumb", "unknown")


def _check_local_state(env: Environ, needed: Sequence[Variable[Any]]) -> None:
    """Check that each needed variable is set if MAIL_LOCAL_STATE=refuse.

    By default, state is in an embedded PostgreSQL and in folders below MAIL_HOME. If one of several
    machines lacked a variable, it would fill a database of its own, which nobody searches. A folder
    that is set is accepted, because all machines may have mounted it.
    """
    state = variables.LOCAL_STATE.read(env)
    missing = [row.name for row in needed if not env.get(row.name)]
    if state == REFUSE and missing:
        raise SettingsError(
            variables.LOCAL_STATE.name,
            state,
            f"not set: {', '.join(missing)}; set them as on the other machines, "
            f"or MAIL_LOCAL_STATE={ALLOW} to use only this machine",
        )


def read_home(env: Environ) -> Path:
    """Return MAIL_HOME; default: var/ in a checkout, $XDG_DATA_HOME/mail-assets elsewhere."""
    if home := variables.HOME.read(env):
        return home
    checkout = find_checkout()
    default = checkout / "var" if checkout else _xdg_folder(env, variables.XDG_DATA)
    return folder(variables.HOME.name, str(default))


def read_lists_path(env: Environ) -> Path:
    """Return MAIL_LISTS, which need not exist; default: the checkout's lists.toml.

    Default outside a checkout: ./lists.toml if it exists, else $XDG_CONFIG_HOME/mail-assets.
    """
    if path := variables.LISTS.read(env):
        return path
    if checkout := find_checkout():
        return checkout / "lists.toml"
    here = absolute_path(variables.LISTS.name, "lists.toml")
    return here if here.is_file() else _xdg_folder(env, variables.XDG_CONFIG) / here.name


def _xdg_folder(env: Environ, row: Variable[Path]) -> Path:
    return absolute_path(row.name, str(row.read(env))) / "mail-assets"


def _default_folder(row: Variable[Any], home: Path) -> str:
    return str(folder(row.name, str(home / row.name.removeprefix("MAIL_").lower())))


def _read_words(env: Environ, home: Path, vectors: str) -> str:
    url = variables.WORDS.read(env) or f"lance:{_default_folder(variables.WORDS, home)}"
    if url == vectors:  # each place has one live index
        raise SettingsError(variables.WORDS.name, url, "must be another place than MAIL_VECTORS")
    return url


def _read_encoder(env: Environ) -> tuple[str, str]:
    name, precision = variables.ENCODER.read(env), variables.PRECISION
    if not name.startswith(REMOTE_SCHEME):
        for row in variables.REMOTE:
            if env.get(row.name):
                raise SettingsError(row.name, "...", "is for MAIL_ENCODER=openai:MODEL only")
        allowed = choice(*LOCAL_MODELS, f"{REMOTE_SCHEME}MODEL")
        return allowed(variables.ENCODER.name, name), precision.read(env)
    if env.get(precision.name):
        raise SettingsError(
            precision.name, env[precision.name], "cannot be set for a model on a server"
        )
    return _read_remote_model(env, name).name, REMOTE_PRECISION


def _read_remote_model(env: Environ, name: str) -> RemoteModel:
    from mail_assets.text.chunk_sizes import MAX_HEADER_BYTES, MIN_ROOM

    model = name.removeprefix(REMOTE_SCHEME)
    if not re.fullmatch(r"[!-~]{1,200}", model) or "@" in model:
        rule = "must be openai:MODEL, as the server calls it"
        raise SettingsError(variables.ENCODER.name, name, rule)
    url = variables.ENCODER_URL.read(env)
    if not variables.ENCODER_KEY.read(env) and url == variables.ENCODER_URL.default:
        raise SettingsError(variables.ENCODER_KEY.name, "", f"{url} requires a key")
    prefix = variables.ENCODER_DOCUMENT_PREFIX.read(env)
    max_tokens = variables.ENCODER_MAX_TOKENS.read(env)
    least = MAX_HEADER_BYTES + MIN_ROOM + SPECIAL_TOKENS + len(prefix.encode())
    return RemoteModel(
        model,
        url,
        variables.ENCODER_DIMENSION.read(env) or None,
        max_tokens=whole_number(least, variables.MAX_INPUT)(
            variables.ENCODER_MAX_TOKENS.name, str(max_tokens)
        ),
        query_prefix=variables.ENCODER_QUERY_PREFIX.read(env),
        document_prefix=prefix,
    )


def _read_provider(env: Environ, precision: str) -> str:
    provider = variables.PROVIDER.read(env)
    try:
        check_provider(provider, precision)
    except ValueError as error:
        rule = f"{error}; set MAIL_PRECISION"
        raise SettingsError(variables.PROVIDER.name, provider, rule) from None
    return provider


def _read_chat(env: Environ) -> "ChatModel | None":
    """Return the chat model, None if none is set; there is no default server for mail."""
    budget = variables.CHAT_BUDGET.read(env)
    url, model = variables.CHAT_URL.read(env), variables.CHAT_MODEL.read(env)
    if not url and not model:
        return None
    if not url or not model:
        missing, other = ("URL", "MODEL") if model else ("MODEL", "URL")
        raise SettingsError(f"MAIL_CHAT_{missing}", "", f"required with MAIL_CHAT_{other}")
    from mail_assets.openai import ChatModel

    return ChatModel(model, url, budget)


def _read_summaries(env: Environ, chat: "ChatModel | None") -> SummarySettings:
    """Return the maker of summaries; mail is sent to a chat model only if `chat` is set."""
    maker = variables.SUMMARIES.read(env)
    if maker == CHAT and chat is None:
        rule = "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL"
        raise SettingsError(variables.SUMMARIES.name, maker, rule)
    return SummarySettings(maker, variables.SUMMARY_BUDGET.read(env))


_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


def blame_folder(settings: Settings, error: OSError) -> SettingsError | None:
    """Turn an OSError about the folder of a setting into an error of that setting, else None.

    A missing folder is an error only when it is created, not at the start: a command may not need
    it, and a container may have no place for it.
    """
    if not isinstance(error.filename, str | bytes | Path):
        return None
    path = Path(error.filename.decode() if isinstance(error.filename, bytes) else error.filename)
    for name, place in _folders(settings):
        # creating a folder creates its parents too
        unmade = not os.path.lexists(path) and place.is_relative_to(path)
        if unmade or (error.errno in _DENIED and path.is_relative_to(place)):
            where = "" if path == place else f": {path}"
            why = f"{error.strerror}{where}; set another folder, or let this account write there"
            return SettingsError(name, str(place), why)
    return None


def _folders(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield the folders of settings; the home first, because most others are in it."""
    from mail_assets.store.open import store_folder

    yield variables.HOME.name, settings.home
    for row, place in (
        (variables.STORE, store_folder(settings.store)),
        (variables.DAGSTER_DIR, settings.dagster_dir),
        (variables.MODEL_DIR, settings.model_dir),
    ):
        if place is not None:
            yield row.name, place
