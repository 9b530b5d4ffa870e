"""Fixtures of the server's tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.postgres import shared_folder


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the folder of the system, which no test should fill."""
    folder = Path(tempfile.mkdtemp(prefix="mail-assets-"))
    folder.chmod(0o755)
    monkeypatch.setattr(shared_folder, "SHARED_FOLDER", folder / "shared")
    yield folder / "shared"
    shutil.rmtree(folder)
