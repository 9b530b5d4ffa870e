"""The server has our settings; the user's own stay and win."""

import subprocess
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres import embedded
from mail_assets.postgres.embedded import FILE, Cluster


def shown(server: Cluster, name: str) -> str:
    """Return a setting as a new connection sees it."""
    with psycopg.connect(server.dsn("postgres")) as connection:
        row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def await_setting(server: Cluster, name: str, value: str) -> None:
    """Wait until a reload, which is a signal, has reached the postmaster."""
    while shown(server, name) != value:
        pass


@pytest.fixture
def server(folder: Path) -> Cluster:
    return Cluster(folder / "pg").start()


def ours(server: Cluster) -> Path:
    return server.paths.data / FILE


def test_a_new_server_has_our_settings(server: Cluster) -> None:
    assert shown(server, "random_page_cost") == "1.1"
    assert shown(server, "max_wal_size") == "4GB"
    assert ours(server).stat().st_uid == server.account.uid


def test_a_running_server_reads_changed_settings(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SERVER_SETTINGS", "random_page_cost = 1.7\n")
    before = (server.paths.data / "postmaster.pid").read_text().split()[0]
    server.start()
    await_setting(server, "random_page_cost", "1.7")
    assert (server.paths.data / "postmaster.pid").read_text().split()[0] == before


def test_unchanged_settings_are_not_written(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(server.paths.data.glob("*.conf"))
    before = [file.stat().st_ino for file in files]
    monkeypatch.setattr(subprocess, "run", None)  # nor is the server asked to read them
    server.start()
    assert [file.stat().st_ino for file in files] == before


@pytest.mark.parametrize("by", ["include", "alter system"])
def test_a_users_own_settings_stay_and_win(
    server: Cluster, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "include":
        with (server.paths.data / "postgresql.conf").open("a") as file:
            file.write("random_page_cost = 2.5\n")
    else:
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
            connection.execute("alter system set random_page_cost = 2.5")
    monkeypatch.setattr(embedded, "SERVER_SETTINGS", "random_page_cost = 1.7\nwork_mem = '7MB'\n")
    server.stop()
    server.start()
    assert shown(server, "random_page_cost") == "2.5"
    assert shown(server, "work_mem") == "7MB"


def test_a_link_at_our_file_is_not_followed(server: Cluster, folder: Path) -> None:
    target = folder / "elsewhere"
    target.write_text("kept")
    ours(server).with_name(f"{FILE}.new").symlink_to(target)
    ours(server).write_text("")
    server.start()
    assert target.read_text() == "kept"
    assert "random_page_cost" in ours(server).read_text()
