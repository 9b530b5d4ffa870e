"""The Dagster instance of the settings, and what is said where its storage fails.

Dagster retries and then raises errors of two libraries, hundreds of lines long.

[dagster_home] The folder that DAGSTER_HOME names, with a dagster.yaml in it that follows this version of ours.

In a checkout that file is a link to ours, elsewhere a copy with a digest in its first line: a copy
that was edited, and every file of another origin, is the user's and is left alone.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy import exc

from mail_assets.checkout import dagster_yaml, find_checkout
from mail_assets.environment import set_variable
from mail_assets.errors import MailAssetsError
from mail_assets.postgres.database import embedded
from mail_assets.postgres.programs import find_last_failure
from mail_assets.settings.settings import Settings
from mail_assets.settings.values import hide_secrets

_STAMP = "# Written by mail-assets, which replaces it until you edit it: "


def use_dagster_home(settings: Settings) -> Path:
    """Set DAGSTER_HOME and return the folder, with dagster.yaml in it.

    Where it is set it may be relative, or begin with "~", and Dagster takes neither.
    """
    home = settings.dagster_home
    set_variable("DAGSTER_HOME", str(home))
    # a home of other projects without a dagster.yaml has Dagster's defaults, and keeps them
    if home == settings.home / "dagster" or _is_empty(home) or (home / "dagster.yaml").exists():
        write_dagster_yaml(home)
    return home


def write_dagster_yaml(home: Path) -> None:
    """Put our dagster.yaml into a folder, which is made, unless there is one of the user's."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "dagster.yaml"
    if not os.path.lexists(path) or _is_ours(path):
        if find_checkout():
            _link(path)
        else:
            _copy(path)


def _is_empty(folder: Path) -> bool:
    return not folder.exists() or not any(folder.iterdir())


def _is_ours(path: Path) -> bool:
    if not path.is_symlink():
        stamp, _, content = path.read_text(encoding="utf-8").partition("\n")
        return stamp == _stamp(content)
    # Ours leads to the file of a checkout, which may be gone. A configuration that is mounted into
    # a container is a link too, and is not ours.
    target = path.parent / path.readlink()
    return (target.parent / "mail_assets").is_dir() or not target.exists()


def _stamp(content: str) -> str:
    return _STAMP + hashlib.sha256(content.encode()).hexdigest()


def _link(path: Path) -> None:
    if path.is_symlink() and path.readlink() == dagster_yaml():
        return
    with contextlib.suppress(FileExistsError):  # two commands at once
        path.unlink(missing_ok=True)
        path.symlink_to(dagster_yaml())


def _copy(path: Path) -> None:
    content = dagster_yaml().read_text(encoding="utf-8")
    stamped = f"{_stamp(content)}\n{content}"
    if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == stamped:
        return
    part = path.with_name(f".dagster.yaml.{os.getpid()}")
    part.write_text(stamped, encoding="utf-8")
    part.replace(path)  # a process that starts now must not read half a configuration


#: What a server raises that is down, refuses, has no room, or ends meanwhile. Wrong SQL is none.
_FAILURES = (
    DagsterPostgresException,
    exc.OperationalError,
    exc.InterfaceError,
)


class DagsterStorageError(MailAssetsError):
    """Dagster's storage fails: one line with the variable or the server's log, and the reason."""


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Open the instance of DAGSTER_HOME, which is set.

    Raises:
        DagsterStorageError: its storage cannot be opened, or fails while the instance is used.
    """
    use_dagster_home(settings)
    try:
        with dg.DagsterInstance.get() as instance:
            yield instance
    except _FAILURES as error:
        raise DagsterStorageError(_describe(settings, _reason(error))) from error


def _describe(settings: Settings, reason: str) -> str:
    if settings.dagster_url:
        url = hide_secrets(settings.dagster_url)
        return f"DAGSTER_POSTGRES_URL={url}, Dagster's storage, fails: {reason}"
    log = embedded(settings.home).paths.log
    said = find_last_failure(log)
    quoted = f"; {log} says: {said}" if said else ""
    return f"Dagster's storage in the embedded server fails: {reason}{quoted}"


def _reason(error: BaseException) -> str:
    """Return the server's or driver's own words, which have neither statements nor passwords."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, exc.DBAPIError):
            return " ".join(str(cause.orig).split())
        cause = cause.__cause__
    return str(error)
