"""All settings of the package, typed, read from the environment and lists.toml.

A wrong value stops the process at its start, with one line that names the variable, the value and
what is allowed. Secrets come from the environment only and are left out of `repr` and of messages.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mail_assets.openai.chat import ChatModel, read_chat
from mail_assets.openai.variables import VariableError, read_key
from mail_assets.postgres.database import Database
from mail_assets.serving.clients import Network
from mail_assets.serving.limits import DEFAULT_ALLOWANCES, Allowance, Cost
from mail_assets.serving.publication import ADDRESSES, HIDDEN
from mail_assets.settings.alerts import read_alert_url, read_base_url
from mail_assets.settings.archives import KEEP_ARCHIVES, read_keep_archives
from mail_assets.settings.asset_graph import FRESH_HOURS, read_fresh_hours, read_owners
from mail_assets.settings.dagster import read_dagster_url
from mail_assets.settings.errors import SettingsError
from mail_assets.settings.lists_file import MailingList, read_lists
from mail_assets.settings.local_state import check_local_state
from mail_assets.settings.paths import read_home, read_lists_path
from mail_assets.settings.summaries import RULES, SummarySettings, read_summaries
from mail_assets.settings.variables import (
    read_choice,
    read_encoder,
    read_folder,
    read_forget_key,
    read_http_auth,
    read_jobs,
    read_mail_dsn,
    read_provider,
    read_quality_set,
    read_store,
    read_vectors,
    read_words,
)
from mail_assets.settings.web import read_hosts, read_limits, read_processes, read_proxies
from mail_assets.steps.wording import Wording
from mail_assets.tables.forget_keys import KeySource, find_key


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
    samples: bool = True
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
    def forget_key(self) -> KeySource:
        """Where the key of the digests of forgotten mail is; not read."""
        return find_key(self.home, self.pg_dsn, self.given_forget_key)

    @property
    def languages(self) -> dict[str, str]:
        """The text search configuration of each list."""
        return {name: one.language for name, one in self.lists.items()}

    @property
    def wordings(self) -> dict[str, Wording]:
        """What the mail of each list is written in."""
        return {name: one.wording for name, one in self.lists.items()}

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
        samples=read_choice(env, "MAIL_SAMPLES", "on", ("on", "off")) == "on",
        web_addresses=read_choice(env, "MAIL_WEB_ADDRESSES", HIDDEN, ADDRESSES),
        web_hosts=read_hosts(env),
        web_audit=read_choice(env, "MAIL_WEB_AUDIT", "on", ("on", "off")) == "on",
        web_proxies=read_proxies(env),
        web_limits=read_limits(env),
        web_url=read_base_url(env, "MAIL_WEB_URL", "https://archive.example.org"),
        web_processes=read_processes(env),
        jobs=read_jobs(env),
    )
