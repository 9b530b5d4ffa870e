"""A whole backfill on a real S3, and over a connection that fails, ends as on folders."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.end_state import Digests, digest_home, list_differences
from mail_assets.settings.settings import load_settings
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.databases import Databases
from mail_assets_tests.s3 import BUCKET
from mail_assets_tests.servers.faulty_proxy import ALL, FaultyProxy, Trouble
from mail_assets_tests.world import EPOCH

pytestmark = [pytest.mark.servers, pytest.mark.slow]

PLACES = {
    "MAIL_STORE": f"s3://{BUCKET}/store",
    "MAIL_VECTORS": f"lance:s3://{BUCKET}/vectors",
    "MAIL_WORDS": f"lance:s3://{BUCKET}/words",
}


@pytest.fixture(scope="module")
def expected(
    home_databases: Databases, model_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Digests]:
    """The content of a home on folders."""
    dsn = home_databases.take()
    home = make_home(tmp_path_factory.mktemp("folders"), dsn, model_cache)
    home.lines("backfill")
    yield digest_home(load_settings(home.environ))
    home_databases.give_back(dsn)


@pytest.fixture
def home(tmp_path: Path, home_dsn: str, model_cache: Path) -> Home:
    """A home whose files and indexes are on S3."""
    made = make_home(tmp_path, home_dsn, model_cache)
    made.environ |= PLACES
    return made


def make_home(folder: Path, dsn: str, models: Path) -> Home:
    """Make a home whose archive was changed at a known time."""
    made = Home(folder, dsn, models)
    os.utime(folder / "tricks" / "harbor-es.2024-03.mbox", (EPOCH, EPOCH))
    return made


def test_backfill_on_s3_ends_as_on_folders(
    s3: Any, home: Home, tmp_path: Path, expected: Digests
) -> None:
    assert home.lines("backfill")[0] == "1 month materialized, 0 failed"
    assert list_differences(expected, digest_home(load_settings(home.environ))) == []
    assert "names@example.es" in "\n".join(home.lines("search", "src/backend/access/heap"))
    assert home.lines("backfill")[0] == "1 month: nothing changed"
    assert not [*tmp_path.glob("store*"), *tmp_path.glob("vectors*"), *tmp_path.glob("words*")]


@pytest.mark.parametrize("seed", [1, 2])
def test_backfill_converges_over_a_bad_connection(
    proxy: FaultyProxy, home: Home, expected: Digests, seed: int
) -> None:
    proxy.trouble = Trouble(0.5, ALL, seed)
    home.run("backfill")  # it may fail, and name the month
    proxy.trouble = Trouble()
    home.lines("backfill")
    assert list_differences(expected, digest_home(load_settings(home.environ))) == []
    assert proxy.happened
