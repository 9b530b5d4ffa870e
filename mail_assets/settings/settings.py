"""All settings of the package, typed, read from the environment and lists.toml.

A wrong value stops the process at its start, with one line that names the variable, the value and
what is allowed. Secrets come from the environment only and are left out of `repr` and of messages.

[local_state] MAIL_LOCAL_STATE: whether what no variable names may be kept on this machine.

On one machine it may: an embedded PostgreSQL and folders below MAIL_HOME. A worker among several
with a variable missing would fill a database of its own, which nobody searches; with `refuse` it
stops at its start.

[dagster] The settings of Dagster's own storage, readable while lists.toml has a mistake in it.

Every Dagster process opens its storage first; the webserver and the daemon must survive a mistake
in lists.toml, which is the code location's error.

[asset_graph] What the asset graph says of the assets: who owns them, and when they are overdue.

[alerts] The settings of alerts: where failures are posted, and where the Dagster UI is.

[archives] How long archives are kept that others have replaced.

[summaries] MAIL_SUMMARIES and MAIL_SUMMARY_TOKENS: what makes the summaries of threads.

[web] What `serve` is set with: who may call it, by which names, how often.

[folders] Which setting a folder that cannot be made, read or written is of.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from mail_assets.http.webhook import check_webhook
from mail_assets.openai.chat import ChatModel, read_chat
from mail_assets.openai.variables import Environ, VariableError, read_key, read_number
from mail_assets.postgres.database import Database
from mail_assets.processes.machine import count_physical_cores
from mail_assets.settings.lists import MailingList, read_lists
from mail_assets.settings.values import (
    MAX_JOBS,
    SettingsError,
    hide_secrets,
    one_of,
    read_choice,
    read_count,
    read_encoder,
    read_folder,
    read_forget_key,
    read_home,
    read_http_auth,
    read_jobs,
    read_lists_path,
    read_mail_dsn,
    read_provider,
    read_quality_set,
    read_store,
    read_vectors,
    read_words,
)
from mail_assets.steps.outcome import ListDefaults
from mail_assets.store.open import store_folder
from mail_assets.tables.removals import KeySource, find_key
from mail_assets.web.limits import DEFAULT_ALLOWANCES, Allowance, Cost, Network
from mail_assets.web.privacy import ADDRESSES, HIDDEN

if TYPE_CHECKING:
    from mail_assets.search.open import SearchSettings

ALLOW, REFUSE = "allow", "refuse"

#: What decides where Dagster keeps its runs; the webserver and the daemon need no more.
STORAGE_VARIABLES = ("DAGSTER_POSTGRES_URL",)

#: Every variable without which something is read from this machine, or kept on it.
SHARED_VARIABLES = (
    "DAGSTER_HOME",
    *STORAGE_VARIABLES,
    "MAIL_LISTS",
    "MAIL_PG_DSN",
    "MAIL_STORE",
    "MAIL_VECTORS",
    "MAIL_WORDS",
)


def check_local_state(env: Mapping[str, str], needed: Sequence[str] = SHARED_VARIABLES) -> None:
    """Check that each needed variable is set where MAIL_LOCAL_STATE=refuse.

    A folder that is set is accepted: it may be one that all machines have mounted.

    Raises:
        SettingsError: some are not set, and it names all of them; or MAIL_LOCAL_STATE is wrong.
    """
    value = env.get("MAIL_LOCAL_STATE") or ALLOW
    if value not in (ALLOW, REFUSE):
        raise SettingsError("MAIL_LOCAL_STATE", value, one_of((ALLOW, REFUSE)))
    missing = [name for name in needed if not env.get(name)]
    if value == REFUSE and missing:
        raise SettingsError(
            "MAIL_LOCAL_STATE",
            value,
            f"not set: {', '.join(missing)}; set them as the other machines have them, "
            f"or MAIL_LOCAL_STATE={ALLOW} to use this machine alone",
        )


@dataclass(frozen=True)
class DagsterSettings:
    """Where Dagster keeps its runs and events.

    `postgres_url` is DAGSTER_POSTGRES_URL; empty: the embedded server of `home` (MAIL_HOME).
    """

    home: Path
    postgres_url: str = field(repr=False)


def load_dagster_settings(environ: Mapping[str, str] | None = None) -> DagsterSettings:
    """Read and check MAIL_LOCAL_STATE, MAIL_HOME and DAGSTER_POSTGRES_URL, and nothing else.

    Raises:
        SettingsError: the first wrong value.
    """
    env = os.environ if environ is None else environ
    check_local_state(env, STORAGE_VARIABLES)
    return DagsterSettings(read_home(env), read_dagster_url(env))


def read_dagster_url(env: Mapping[str, str]) -> str:
    """Return DAGSTER_POSTGRES_URL, which may be empty.

    Raises:
        SettingsError: it names another driver than dagster-postgres uses, or none.
    """
    url = env.get("DAGSTER_POSTGRES_URL", "")
    if url and not url.startswith("postgresql+psycopg2://"):
        raise SettingsError(
            "DAGSTER_POSTGRES_URL", hide_secrets(url), "must begin with postgresql+psycopg2://"
        )
    return url


#: Two days: one missed run of the daily schedule does not count, the second does.
FRESH_HOURS = 48

#: What Dagster accepts as an owner.
_OWNER = re.compile(r"team:.+|[^@\s]++@[^@\s.]++(?:\.[^@\s.]++)+")


def read_owners(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return MAIL_OWNERS: e-mail addresses and "team:NAME", separated by commas.

    Raises:
        SettingsError: an owner is written otherwise.
    """
    owners = [owner.strip() for owner in env.get("MAIL_OWNERS", "").split(",") if owner.strip()]
    for owner in owners:
        if not _OWNER.fullmatch(owner):
            raise SettingsError("MAIL_OWNERS", owner, "an owner is an e-mail address or team:NAME")
    return tuple(owners)


def read_fresh_hours(env: Mapping[str, str]) -> int:
    """Return MAIL_FRESH_HOURS: the hours after which archives are overdue; 0: they never are.

    Raises:
        SettingsError: it is not a whole number of hours.
    """
    return read_count(env, "MAIL_FRESH_HOURS", FRESH_HOURS, "hours; 0: never overdue")


def read_alert_url(env: Mapping[str, str]) -> str:
    """Return MAIL_ALERT_URL, the URL of a webhook; empty where no alerts are wanted.

    Raises:
        SettingsError: it cannot be a webhook's. The value is a secret and is not repeated.
    """
    url = env.get("MAIL_ALERT_URL", "").strip()
    if url:
        try:
            check_webhook(url)
        except ValueError as error:
            raise SettingsError("MAIL_ALERT_URL", "***", str(error)) from None
    return url


def read_base_url(env: Mapping[str, str], name: str, example: str) -> str:
    """Return the URL of a site without a slash at its end, or "".

    Raises:
        SettingsError: it is no http:// or https:// URL of a place.
    """
    url = env.get(name, "").strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an IPv6 address without its bracket, a port that is no number
        usable = False
    if url and (not usable or any(sign in url for sign in " @?#<>|")):
        raise SettingsError(name, url, f"must be a base URL such as {example}")
    return url


#: Days: long enough for a monthly look at what vanished.
KEEP_ARCHIVES = 30


def read_keep_archives(env: Mapping[str, str]) -> int:
    """Return MAIL_KEEP_ARCHIVES: the days that a former archive is kept; 0: not at all.

    Raises:
        SettingsError: it is not a whole number of days.
    """
    return read_count(env, "MAIL_KEEP_ARCHIVES", KEEP_ARCHIVES, "days; 0: not kept at all")


EXTRACTIVE, CHAT = "extractive", "chat"

#: Tokens that a run may use: some 300 threads of six messages.
SUMMARY_TOKENS = 1_000_000


class SummarySettings(NamedTuple):
    """What makes summaries, and how many tokens of a chat model a run may use."""

    maker: str = EXTRACTIVE
    tokens: int = SUMMARY_TOKENS


#: Nothing is sent anywhere.
RULES = SummarySettings()


def read_summaries(env: Environ, chat: ChatModel | None) -> SummarySettings:
    """Return what makes summaries; mail is sent nowhere unless `chat` is asked for by name.

    Raises:
        SettingsError: a chat model is wanted, and none is set.
        VariableError: a number is wrong.
    """
    maker = read_choice(env, "MAIL_SUMMARIES", EXTRACTIVE, (EXTRACTIVE, CHAT))
    if maker == CHAT and chat is None:
        raise SettingsError("MAIL_SUMMARIES", maker, "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL")
    tokens = read_number(env, "MAIL_SUMMARY_TOKENS", SUMMARY_TOKENS, 1_000, 999_999_999)
    return SummarySettings(maker, tokens)


#: Processes that search where MAIL_WEB_PROCESSES is not set: two at least, so that a slow search
#: does not keep all others waiting, and four at most, which take 0.2 to 0.3 GB each.
FEWEST_PROCESSES, MOST_PROCESSES = 2, 4

_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?", re.ASCII)
_LIMITS = {
    Cost.read: "MAIL_WEB_READS",
    Cost.search: "MAIL_WEB_SEARCHES",
    Cost.export: "MAIL_WEB_EXPORTS",
    Cost.answer: "MAIL_WEB_ANSWERS",
}


def read_hosts(env: Environ) -> tuple[str, ...]:
    """Return MAIL_WEB_HOSTS: names, with a port where it is not that of the scheme.

    Raises:
        SettingsError: one is a URL, or no name.
    """
    hosts = _split(env, "MAIL_WEB_HOSTS")
    if wrong := [name for name in hosts if not _HOST.fullmatch(name)]:
        raise SettingsError("MAIL_WEB_HOSTS", wrong[0], "must be names such as archive.example.org")
    return hosts


def read_proxies(env: Environ) -> tuple[Network, ...]:
    """Return MAIL_WEB_PROXIES: addresses and networks whose X-Forwarded-For is believed.

    Raises:
        SettingsError: one is no address and no network.
    """
    proxies = _split(env, "MAIL_WEB_PROXIES")
    try:
        return tuple(map(ip_network, proxies))
    except ValueError as error:
        rule = f"must be addresses or networks such as 127.0.0.1,10.0.0.0/8: {error}"
        raise SettingsError("MAIL_WEB_PROXIES", ",".join(proxies), rule) from None


def read_limits(env: Environ) -> Mapping[Cost, Allowance]:
    """Return how often a client may ask, by what it costs: requests a minute.

    What is set holds for clients on this machine too, the defaults do not.

    Raises:
        SettingsError: one is no number.
    """
    allowances = {**DEFAULT_ALLOWANCES}
    for cost, name in _LIMITS.items():
        if env.get(name):
            most = read_count(env, name, 0, "requests a minute; 0: any number")
            allowances[cost] = Allowance(most, DEFAULT_ALLOWANCES[cost].at_once, most)
    return allowances


def read_processes(env: Environ) -> int:
    """Return MAIL_WEB_PROCESSES: those that search; one a core, within bounds, if it is not set.

    0: searches run in threads of the server.

    Raises:
        SettingsError: it is no number.
    """
    default = max(FEWEST_PROCESSES, min(MOST_PROCESSES, count_physical_cores()))
    unit = "processes; 0: searches run in threads"
    return read_count(env, "MAIL_WEB_PROCESSES", default, unit, MAX_JOBS)


def _split(env: Environ, name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in env.get(name, "").split(",") if one.strip())


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; README.md says what each variable means."""

    home: Path
    lists_file: Path
    first_month: str
    lists: Mapping[str, MailingList]
    store: str
    vectors: str
    words: str
    encoder: str
    precision: str
    last_month: str | None = None
    provider: str = "cpu"
    model_dir: Path | None = None
    dagster_dir: Path | None = None
    pg_dsn: str = field(default="", repr=False)
    dagster_url: str = field(default="", repr=False)
    http_auth: str = field(default="", repr=False)
    chat: ChatModel | None = None
    chat_key: str = field(default="", repr=False)
    summaries: SummarySettings = RULES
    quality_set: Path | None = None
    alert_url: str = field(default="", repr=False)
    ui_url: str = ""
    owners: tuple[str, ...] = ()
    fresh_hours: int = FRESH_HOURS
    keep_archives: int = KEEP_ARCHIVES
    given_forget_key: str = field(default="", repr=False)
    forget_archives: str = "keep"
    web_addresses: str = HIDDEN
    web_hosts: tuple[str, ...] = ()
    web_audit: bool = True
    web_proxies: tuple[Network, ...] = ()
    web_limits: Mapping[Cost, Allowance] = field(default_factory=lambda: DEFAULT_ALLOWANCES)
    web_url: str = ""
    web_processes: int = 0
    jobs: int = 1

    @property
    def database(self) -> Database:
        """The mail database, not opened."""
        return Database(self.home, self.pg_dsn)

    @property
    def search(self) -> "SearchSettings":
        """The settings of a searcher."""
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
    def forget_key(self) -> KeySource:
        """Where the key of the digests of forgotten mail is; not read."""
        return find_key(self.home, self.pg_dsn, self.given_forget_key)

    @property
    def languages(self) -> dict[str, str]:
        """The text search configuration of each list."""
        return {name: one.language for name, one in self.lists.items()}

    @property
    def list_defaults(self) -> dict[str, ListDefaults]:
        """The language and charset of each list, for mail that names none."""
        return {name: one.defaults for name, one in self.lists.items()}

    @property
    def dagster_home(self) -> Path:
        """Where Dagster keeps dagster.yaml and compute logs: DAGSTER_HOME, else below `home`."""
        return self.dagster_dir or self.home / "dagster"

    @property
    def source_cache(self) -> Path:
        """Where sources keep mirrors, and which message is of which month; it may be deleted."""
        return self.home / "cache" / "sources"

    @property
    def model_cache(self) -> Path:
        """Where prepared ONNX files are kept, and model files put there by hand, in MODEL/."""
        return self.model_dir or self.home / "models"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check all settings.

    Raises:
        SettingsError: the first wrong value.
    """
    env = os.environ if environ is None else environ
    check_local_state(env)
    home = read_home(env)
    lists_file = read_lists_path(env)
    first_month, last_month, lists = read_lists(lists_file)
    try:
        encoder, precision = read_encoder(env)
        chat, chat_key = read_chat(env), read_key(env, "MAIL_CHAT_KEY")
        summaries = read_summaries(env, chat)
    except VariableError as error:
        raise SettingsError(*error.args) from None
    return Settings(
        home=home,
        lists_file=lists_file,
        first_month=first_month,
        lists=lists,
        last_month=last_month,
        store=read_store(env, home),
        vectors=read_vectors(env, home),
        words=read_words(env, home),
        encoder=encoder,
        precision=precision,
        provider=read_provider(env, precision),
        model_dir=read_folder(env, "MAIL_MODEL_DIR"),
        dagster_dir=read_folder(env, "DAGSTER_HOME"),
        pg_dsn=read_mail_dsn(env),
        dagster_url=read_dagster_url(env),
        http_auth=read_http_auth(env),
        chat=chat,
        chat_key=chat_key,
        summaries=summaries,
        quality_set=read_quality_set(env),
        alert_url=read_alert_url(env),
        ui_url=read_base_url(env, "MAIL_UI_URL", "http://127.0.0.1:3000"),
        owners=read_owners(env),
        fresh_hours=read_fresh_hours(env),
        keep_archives=read_keep_archives(env),
        given_forget_key=read_forget_key(env),
        forget_archives=read_choice(env, "MAIL_FORGET_ARCHIVES", "keep", ("keep", "rewrite")),
        web_addresses=read_choice(env, "MAIL_WEB_ADDRESSES", HIDDEN, ADDRESSES),
        web_hosts=read_hosts(env),
        web_audit=read_choice(env, "MAIL_WEB_AUDIT", "on", ("on", "off")) == "on",
        web_proxies=read_proxies(env),
        web_limits=read_limits(env),
        web_url=read_base_url(env, "MAIL_WEB_URL", "https://archive.example.org"),
        web_processes=read_processes(env),
        jobs=read_jobs(env),
    )


_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


def blame_folder(settings: Settings, error: OSError) -> SettingsError | None:
    """Return an error of the system as that of the setting whose folder it is about, if any.

    A folder that is not there yet is refused when it is made and not at the start: a command may
    need none, and a container may have no place for one.
    """
    if not isinstance(error.filename, str | bytes | Path):
        return None
    path = Path(error.filename.decode() if isinstance(error.filename, bytes) else error.filename)
    for name, folder in _folders(settings):
        # to make it was to make those above it
        unmade = not os.path.lexists(path) and folder.is_relative_to(path)
        if unmade or (error.errno in _DENIED and path.is_relative_to(folder)):
            where = "" if path == folder else f": {path}"
            why = f"{error.strerror}{where}; set another folder, or let this account write there"
            return SettingsError(name, str(folder), why)
    return None


def _folders(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield the folders by their variables, the home first: most of the others are in it."""
    yield "MAIL_HOME", settings.home
    for name, folder in (
        ("MAIL_STORE", store_folder(settings.store)),
        ("DAGSTER_HOME", settings.dagster_dir),
        ("MAIL_MODEL_DIR", settings.model_dir),
    ):
        if folder is not None:
            yield name, folder
