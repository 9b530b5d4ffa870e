"""Errors of folders that settings name, told with the setting and the remedy."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.settings.settings import Settings, blame_folder, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose home is there, and whose other folders are not."""
    (tmp_path / "home").mkdir()
    return replace(
        load_settings({"MAIL_HOME": str(tmp_path / "home")}),
        store=str(tmp_path / "store" / "deep"),
        dagster_dir=tmp_path / "dagster",
        model_dir=tmp_path / "models",
    )


@pytest.mark.parametrize(
    ("code", "path", "said"),
    [
        (errno.EACCES, "home", "MAIL_HOME='{0}/home': Permission denied; set"),
        (errno.EROFS, "home/models", "MAIL_HOME='{0}/home': Read-only file system: {0}/home/mod"),
        (errno.ENOENT, "dagster", "DAGSTER_HOME='{0}/dagster': No such file or directory; set"),
        (errno.EACCES, "store", "MAIL_STORE='{0}/store/deep': Permission denied: {0}/store; set"),
        (errno.EPERM, "models/a/b", "MAIL_MODEL_DIR='{0}/models': Operation not permitted: {0}"),
    ],
)
def test_the_setting_of_a_folder_that_cannot_be_used_is_named(
    settings: Settings, tmp_path: Path, code: int, path: str, said: str
) -> None:
    blamed = blame_folder(settings, OSError(code, os.strerror(code), str(tmp_path / path)))
    assert str(blamed).startswith(said.format(tmp_path))
    assert str(blamed).endswith("set another folder, or let this account write there")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        (errno.EACCES, "elsewhere"),
        (errno.EACCES, ""),  # above the folders, and there: none of them was to be made
        (errno.ENOENT, "home/gone.parquet"),
        (errno.ENOSPC, "home/full"),
    ],
)
def test_other_errors_are_of_no_setting(
    settings: Settings, tmp_path: Path, code: int, path: str
) -> None:
    error = OSError(code, os.strerror(code), str(tmp_path / path))
    assert blame_folder(settings, error) is None
    assert blame_folder(settings, OSError("no file is named")) is None
    assert blame_folder(settings, OSError(code, os.strerror(code), 3)) is None
