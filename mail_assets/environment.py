"""The environment of this process. Every other module reads, changes and passes it on through here.

`mail_assets.settings` has the table of variables, and reads and checks all of them at start. A room
below it reads a key or the place of a program from `VARIABLES` when it needs one: no configuration
may hold a key, and a worker process has the environment of its parent.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

#: The variables of this process, as they are now.
VARIABLES: Mapping[str, str] = os.environ


def read_secret_files(folder: Path, names: Iterable[str]) -> None:
    """Set the variables that have a file of their name in a folder, unless they are set.

    Raises:
        OSError: a file cannot be read.
    """
    for name in names:
        if not os.environ.get(name) and (path := folder / name).is_file():
            os.environ[name] = path.read_text(encoding="utf-8").strip()


def child_environment(*, without: str = "\0", **changes: str) -> dict[str, str]:
    """Return the environment for a child process, without the variables of a prefix."""
    return {name: v for name, v in os.environ.items() if not name.startswith(without)} | changes


def set_variable(name: str, value: str) -> None:
    """Set a variable for this process and its children, for a library that reads it."""
    os.environ[name] = value


def set_default(name: str, value: str) -> None:
    """Set a variable for a library that reads it, unless the user has set it."""
    os.environ.setdefault(name, value)


def replace_environment(variables: Mapping[str, str]) -> None:
    """Give this process the variables of another one, and no others."""
    os.environ.clear()
    os.environ.update(variables)
