"""The wheel is complete and works without a checkout. .ci/check_wheel.py has further checks."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import mail_assets
from mail_assets_tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked files of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = WheelBuilder(str(REPOSITORY)).build(directory=str(folder / "dist"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return folder / "site-packages"


def run(unpacked: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the wheel's files, in a folder that is also the user's home."""
    inherited = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
    environ = {name: os.environ[name] for name in inherited if name in os.environ}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**environ, "HOME": str(folder), "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel_has_the_package_and_nothing_else(unpacked: Path) -> None:
    packed = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    modules = [*(REPOSITORY / "mail_assets").rglob("*.py")]
    languages = [*(REPOSITORY / "mail_assets/mail/body/languages").glob("*.toml")]
    assert len(languages) > 30
    pages = [
        path
        for folder in ("templates", "static")
        for path in (REPOSITORY / "mail_assets/web" / folder).iterdir()
    ]
    assert len(pages) > 5
    texts = [
        REPOSITORY / "mail_assets" / name
        for name in (
            "mail/body/languages/README.md",
            "encoding/calibration.txt",
            "web/mcp_greeting.json",
        )
    ]
    package = {str(path.relative_to(REPOSITORY)) for path in (*modules, *languages, *pages, *texts)}
    sql = REPOSITORY / "sql"
    beside = [REPOSITORY / "dagster.yaml", sql / "columns.json", *sql.rglob("*.sql")]
    assert len(beside) > 20
    expected = package | {f"mail_assets/{path.relative_to(REPOSITORY)}" for path in beside}
    assert {path for path in packed if ".dist-info/" not in path} == expected


def test_the_version_of_the_wheel_is_that_of_the_package(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    assert f"\nVersion: {mail_assets.__version__}\n" in metadata.read_text()
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "mail-assets = mail_assets.cli:main" in entry_points.read_text()


def test_an_installed_wheel_reads_its_own_sql_files(unpacked: Path, tmp_path: Path) -> None:
    code = """
from mail_assets.files import dagster_yaml, find_checkout, sql_folder
from mail_assets.postgres.statements import migrations
from mail_assets.postgres.statements import statement
assert find_checkout() is None
assert "MailStorage" in dagster_yaml().read_text(encoding="utf-8")
assert migrations() and statement("conversations", "count")
print(sql_folder())
"""
    done = run(unpacked, tmp_path, "-c", code)
    assert (done.stdout, done.stderr) == (f"{unpacked / 'mail_assets' / 'sql'}\n", "")


def test_in_an_empty_folder_the_first_command_says_how_to_begin(
    unpacked: Path, tmp_path: Path
) -> None:
    done = run(unpacked, tmp_path, "-m", "mail_assets.cli", "status")
    assert done.returncode == 2
    assert f"{tmp_path}/.config/mail-assets/lists.toml" in done.stderr
    assert "write one with `mail-assets init`" in done.stderr


def test_init_makes_a_working_installation_in_the_users_folders(
    unpacked: Path, tmp_path: Path
) -> None:
    (tmp_path / "archives").mkdir()
    command = ("-m", "mail_assets.cli")
    init = run(unpacked, tmp_path, *command, "init", "--name", "dev", "--source", "archives")
    assert (init.returncode, init.stderr) == (0, "")
    status = run(unpacked, tmp_path, *command, "status", "--json")
    facts = json.loads(status.stdout)
    assert facts["home"] == f"{tmp_path}/.local/share/mail-assets"
    assert facts["lists"] == f"{tmp_path}/.config/mail-assets/lists.toml: dev"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".config", "archives"]
