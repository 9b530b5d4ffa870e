"""Paths in settings: made absolute, with defaults for a checkout and for an installed wheel."""

import os
from collections.abc import Mapping
from pathlib import Path

from mail_assets.checkout import find_checkout
from mail_assets.settings.errors import SettingsError


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
