"""What the tests of the steps may ask for."""

from pathlib import Path

import pytest

from mail_assets_tests.world import World


@pytest.fixture
def world(tmp_path: Path, mail_dsn: str) -> World:
    """An empty world."""
    return World(tmp_path, mail_dsn)
