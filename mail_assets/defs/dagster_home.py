"""The folder that DAGSTER_HOME names, with the project's dagster.yaml in it."""

import contextlib
from pathlib import Path

from mail_assets.checkout import data_path


def link_dagster_home(home: Path) -> Path:
    """Make a DAGSTER_HOME whose dagster.yaml is the project's."""
    home.mkdir(parents=True, exist_ok=True)
    link, target = home / "dagster.yaml", data_path("dagster.yaml")
    if not link.is_symlink() and link.exists():
        return home  # the user's own
    if not link.exists() or link.resolve() != target:
        with contextlib.suppress(FileExistsError):  # two commands at once
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return home
