"""The settings of Dagster's own storage, readable while lists.toml has a mistake in it.

Every Dagster process opens its storage first; the webserver and the daemon must survive a mistake
in lists.toml, which is the code location's error.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mail_assets.settings.errors import SettingsError, hide_secrets
from mail_assets.settings.local_state import STORAGE_VARIABLES, check_local_state
from mail_assets.settings.paths import read_home


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
