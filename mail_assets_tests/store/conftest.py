"""What the tests of the tables may ask for."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.database import Database


@pytest.fixture
def migrated(tmp_path: Path, postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to an empty mail database."""
    with Database(tmp_path, postgres_dsn).connect("test") as connection:
        yield connection
