"""The Dagster instance of the settings, its folder, and short messages when its storage fails.

DAGSTER_HOME gets a dagster.yaml that stays up to date: in a checkout a link to ours, elsewhere a
copy with a digest in its first line. An edited copy, or any other file, belongs to the user and is
not changed.

When its storage fails, Dagster raises errors of two libraries with hundreds of lines.
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

from mail_assets.environment import set_variable
from mail_assets.errors import MailAssetsError
from mail_assets.files import dagster_yaml, find_checkout, make_private_folder
from mail_assets.postgres.database import embedded
from mail_assets.postgres.programs import find_last_failure
from mail_assets.settings.settings import Settings
from mail_assets.settings.values import hide_secrets

#: Errors of a server that is down, refuses the connection, is full or stops; not of wrong SQL.
_FAILURES = (DagsterPostgresException, exc.OperationalError, exc.InterfaceError)


class DagsterStorageError(MailAssetsError):
    """Dagster's storage fails; the message names the variable or the server's log."""


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Open the Dagster instance of the home; sets DAGSTER_HOME.

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
    """Return the message of the server or driver, without statements and passwords."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, exc.DBAPIError):
            return " ".join(str(cause.orig).split())
        cause = cause.__cause__
    return str(error)


_STAMP = "# Written by mail-assets, which replaces it until you edit it: "


def use_dagster_home(settings: Settings) -> Path:
    """Set DAGSTER_HOME to an absolute folder, as Dagster requires; return it with dagster.yaml."""
    home = settings.dagster_home
    set_variable("DAGSTER_HOME", str(home))
    # a home shared with other projects may have no dagster.yaml and so keeps Dagster's defaults
    is_empty = not home.exists() or not any(home.iterdir())
    if home == settings.home / "dagster" or is_empty or (home / "dagster.yaml").exists():
        write_dagster_yaml(home)
    return home


def write_dagster_yaml(home: Path) -> None:
    """Create a folder and write our dagster.yaml into it, unless it has a file of the user."""
    make_private_folder(home)
    path = home / "dagster.yaml"
    if not os.path.lexists(path) or _is_ours(path):
        if find_checkout():
            _link(path)
        else:
            _copy(path)


def _is_ours(path: Path) -> bool:
    if not path.is_symlink():
        stamp, _, content = path.read_text(encoding="utf-8").partition("\n")
        return stamp == _stamp(content)
    # Our link leads to the file of a checkout, which may have been deleted. A file that is mounted
    # into a container is also a link.
    target = path.parent / path.readlink()
    return (target.parent / "mail_assets").is_dir() or not target.exists()


def _stamp(content: str) -> str:
    return _STAMP + hashlib.sha256(content.encode()).hexdigest()


def _link(path: Path) -> None:
    if path.is_symlink() and path.readlink() == dagster_yaml():
        return
    with contextlib.suppress(FileExistsError):  # another command has just written it
        path.unlink(missing_ok=True)
        path.symlink_to(dagster_yaml())


def _copy(path: Path) -> None:
    content = dagster_yaml().read_text(encoding="utf-8")
    stamped = f"{_stamp(content)}\n{content}"
    if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == stamped:
        return
    part = path.with_name(f".dagster.yaml.{os.getpid()}")
    part.write_text(stamped, encoding="utf-8")
    part.replace(path)  # atomic: a starting process must not read half a configuration
