"""Private files, and the package's own in a checkout and in an installed wheel."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mail_assets import files
from mail_assets_tests.conftest import REPOSITORY


def test_a_checkout_is_the_folder_around_the_package() -> None:
    assert files.find_checkout() == REPOSITORY
    assert files.sql_folder() == REPOSITORY / "sql"


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package without any of its files, in a folder of packages."""
    package = tmp_path / "mail_assets"
    package.mkdir()
    monkeypatch.setattr(files, "_PACKAGE", package)
    return tmp_path


def test_a_wheel_uses_the_files_inside_it(site_packages: Path) -> None:
    (site_packages / "mail_assets" / "sql").mkdir()
    (site_packages / "sql").mkdir()
    assert files.find_checkout() is None
    assert files.sql_folder() == site_packages / "mail_assets" / "sql"


def test_a_folder_named_sql_alone_is_no_checkout(site_packages: Path) -> None:
    (site_packages / "sql").mkdir()
    with pytest.raises(FileNotFoundError, match="has no sql/: install mail-assets again"):
        files.sql_folder()


def test_threads_may_write_one_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(files.write_private, path, bytes([n]) * 999) for n in range(200)]:
            done.result()
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert len(set(path.read_bytes())) == 1
