"""Which setting a folder that cannot be made, read or written is of."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from mail_assets.settings.environment import Settings
from mail_assets.settings.errors import SettingsError
from mail_assets.store.open import store_folder

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
