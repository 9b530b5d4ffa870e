"""Fixtures of the server's tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.postgres import programs
from mail_assets.postgres.embedded import SHORT_FOLDER, Cluster


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the folder of the system, which no test should fill."""
    folder = Path(tempfile.mkdtemp(prefix="mail-assets-"))
    folder.chmod(0o755)
    monkeypatch.setattr(programs, "SHARED_FOLDER", folder / "shared")
    yield folder / "shared"
    shutil.rmtree(folder)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's account can enter, which pytest's own keeps to the user.

    TMPDIR may be too long for a socket.
    """
    path = Path(tempfile.mkdtemp(prefix="mail assets ", dir=SHORT_FOLDER))
    path.chmod(0o755)
    yield path
    for lock in [*path.rglob(".lock")]:
        Cluster(lock.parent).remove()
    shutil.rmtree(path)
