"""The environment variables of this process; all other modules access them through this module.

`mail_assets.settings` has the table of variables, and reads and checks all of them at start.
Modules below it read a key or the path of a program from `VARIABLES` when they need it: no
configuration may contain a key, and a worker process has the environment of its parent.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

#: The current variables of this process.
VARIABLES: Mapping[str, str] = os.environ


def read_secret_files(folder: Path, names: Iterable[str]) -> None:
    """Set each variable that has a file of the same name in a folder, unless it is set already.

    Raises:
        OSError: a file cannot be read.
    """
    for name in names:
        if not os.environ.get(name) and (path := folder / name).is_file():
            os.environ[name] = path.read_text(encoding="utf-8").strip()


def child_environment(*, without: str = "\0", **changes: str) -> dict[str, str]:
    """Return the environment for a child process, without variables that have a prefix."""
    return {name: v for name, v in os.environ.items() if not name.startswith(without)} | changes


def set_variable(name: str, value: str) -> None:
    """Set a variable for this process and its children, for a library that reads it."""
    os.environ[name] = value


def set_default(name: str, value: str) -> None:
    """Set a variable for a library that reads it, unless the user has set it."""
    os.environ.setdefault(name, value)


def replace_environment(variables: Mapping[str, str]) -> None:
    """Replace all variables of this process."""
    os.environ.clear()
    os.environ.update(variables)
