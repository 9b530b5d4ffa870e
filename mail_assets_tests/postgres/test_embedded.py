"""The embedded server: made once, found by every process, safe when killed; its settings."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres import embedded, programs
from mail_assets.postgres.embedded import FILE, INITDB_OPTIONS, Cluster, remove_stale_lock
from mail_assets.postgres.programs import PostgresError, find_bindir, server_account
from mail_assets_tests.waits import LONG

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change the account")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

#: Starts the server below argv[1] as the user argv[2], if there is one, writes a row, prints
#: the server's process id.
STARTER = """
import os
import sys
from pathlib import Path
import psycopg
from mail_assets.postgres.embedded import Cluster

if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
server = Cluster(Path(sys.argv[1])).start()
with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
    connection.execute("select pg_advisory_lock(1)")
    connection.execute("create table if not exists starts (pid integer)")
    connection.execute("insert into starts values (pg_backend_pid())")
print((server.paths.data / "postmaster.pid").read_text().split()[0])
"""


def postmaster(server: Cluster) -> int:
    return int((server.paths.data / "postmaster.pid").read_text().split()[0])


def rows(server: Cluster) -> list[int]:
    with psycopg.connect(server.dsn("postgres")) as connection:
        return [n for (n,) in connection.execute("select n from kept order by n").fetchall()]


def keep(server: Cluster, n: int) -> None:
    with psycopg.connect(server.dsn("postgres")) as connection:
        connection.execute("create table if not exists kept (n integer)")
        connection.execute("insert into kept values (%s)", (n,))


def test_fresh_start_ignores_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # as outside of tests: by initdb itself, and not by a copy of what it has made
    monkeypatch.setattr(embedded, "INITDB_OPTIONS", INITDB_OPTIONS)
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "LC_ALL": "C"}.items():
        monkeypatch.setenv(name, value)
    server = Cluster(folder / "pg")
    assert not server.running()
    assert server.start() is server
    assert server.running()
    with psycopg.connect(server.dsn("postgres")) as connection:
        facts = connection.execute(
            "select current_setting('listen_addresses'), current_setting('server_encoding'),"
            " to_tsvector('english', '“smart quotes”')::text"
        ).fetchone()
    assert facts == ("", "UTF8", "'quot':2 'smart':1")


def test_only_the_server_can_enter_socket_and_data(cluster: Cluster) -> None:
    for path in (cluster.paths.socket_folder, cluster.paths.data):
        assert path.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_uid == cluster.account.uid


def test_second_start_leaves_the_server_alone(cluster: Cluster) -> None:
    first = postmaster(cluster)
    cluster.start()
    Cluster(cluster.paths.root).start()
    remove_stale_lock(cluster.paths.data, cluster.paths.socket_folder)
    assert postmaster(cluster) == first
    assert cluster.running()


def test_running_server_is_known_without_another_process(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
        """End as a process that is started while other threads call gRPC may."""
        return subprocess.CompletedProcess([], -signal.SIGSEGV)

    monkeypatch.setattr(subprocess, "run", die)
    assert cluster.running()
    assert cluster.start() is cluster


def test_data_survive_stop_and_start(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    keep(server, 1)
    assert server.stop()
    assert not server.running()
    assert not server.stop()
    assert rows(server.start()) == [1]


def test_stop_and_remove_do_nothing_without_a_server(folder: Path) -> None:
    server = Cluster(folder / "pg")
    assert not server.stop()
    server.remove()
    assert not (folder / "pg").exists()


def test_only_committed_rows_survive_a_kill(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    keep(server, 1)
    with psycopg.connect(server.dsn("postgres")) as open_connection:
        open_connection.execute("insert into kept values (2)")
        os.kill(postmaster(server), signal.SIGKILL)
        assert rows(server.start()) == [1]
        open_connection.close()
    keep(server, 3)
    assert rows(server) == [1, 3]


@on_linux
def test_dead_server_with_a_reused_pid_starts(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    keep(server, 1)
    lock = server.paths.data / "postmaster.pid"
    left = lock.read_text()
    server.stop()
    with subprocess.Popen(["sleep", "60"], cwd="/", **server.account.switch) as other:
        lock.write_text("\n".join([str(other.pid), *left.splitlines()[1:], ""]))
        os.chown(lock, server.account.uid, server.account.gid)
        try:
            assert rows(server.start()) == [1]
        finally:
            other.kill()


def test_many_processes_at_once_start_one_server(folder: Path) -> None:
    root = folder / "pg"
    command = [sys.executable, "-c", STARTER, str(root)]
    starters = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = [starter.communicate(timeout=LONG) for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * 6, answers
    assert len({out for out, _ in answers}) == 1
    with psycopg.connect(Cluster(root).dsn("postgres")) as connection:
        assert connection.execute("select count(*) from starts").fetchone() == (6,)


@pytest.mark.parametrize(("name", "short"), [
    ("100% it's with spaces & accents é", False),
    ("a,b", True),
    ("x" * 100, True),
])  # fmt: skip
def test_unusual_paths_work(folder: Path, name: str, short: bool) -> None:
    server = Cluster(folder / name).start()
    assert (server.paths.socket_folder.parent == embedded.SHORT_FOLDER) is short
    assert server.paths.socket_folder.stat().st_mode & 0o777 == 0o700
    keep(server, 1)
    assert rows(server) == [1]
    server.remove()
    assert not server.paths.socket_folder.exists()
    assert not (folder / name).exists()


@pytest.mark.parametrize("character", ['"', "$", "`", "\\", "\n"])
def test_path_with_shell_characters_is_refused(folder: Path, character: str) -> None:
    with pytest.raises(PostgresError, match="MAIL_HOME"):
        Cluster(folder / f"a{character}b").start()


def test_leftovers_of_a_killed_initdb_are_removed(folder: Path) -> None:
    server = Cluster(folder / "pg")
    fresh = server.paths.data.with_name(f"{server.paths.data.name}.new")
    (fresh / "half").mkdir(parents=True)
    for left in ("half/made", "PG_VERSION"):
        (fresh / left).write_text("18")
    keep(server.start(), 1)
    assert not fresh.exists()


def test_server_starts_where_its_folder_was_deleted(folder: Path) -> None:
    folder.chmod(0o755)
    server = Cluster(folder / "pg").start()
    server.remove()
    assert not server.paths.root.exists()
    keep(server.start(), 1)
    assert rows(server) == [1]


def test_dsn_quotes_the_socket(folder: Path) -> None:
    server = Cluster(folder / "a b")
    socket = str(server.paths.socket_folder).replace(" ", "%20")
    assert server.dsn("mail") == f"postgresql://postgres@/mail?host={socket}&port=5432"
    assert server.dsn("dagster", "postgresql+psycopg2").startswith("postgresql+psycopg2://")


@as_root
def test_root_hands_over_to_another_account(cluster: Cluster) -> None:
    assert cluster.account.uid != 0
    assert Path(f"/proc/{postmaster(cluster)}").stat().st_uid == cluster.account.uid


@as_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_roots_private_folder_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setattr(programs, "SHARED_FOLDER", folder / "shared")
    private = folder / "private"
    private.mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        server = Cluster(private / "pg").start()
    finally:
        os.umask(before)
    assert server.paths.root.parent == folder / "shared"
    assert private.stat().st_mode & 0o777 == 0o700
    assert Cluster(private / "pg").paths.root == server.paths.root
    keep(server, 1)
    server.remove()
    assert not server.paths.root.exists()


@as_root
def test_ordinary_user_has_a_server_of_its_own(folder: Path) -> None:
    nobody = server_account()
    if not nobody.reaches(find_bindir() / "postgres"):
        pytest.skip("the binaries are out of an ordinary user's reach")
    home = folder / "home"
    home.mkdir()
    os.chown(home, nobody.uid, nobody.gid)
    done = run_as(nobody.uid, home / "pg")
    assert done.returncode == 0, done.stderr
    try:
        assert (home / "pg").stat().st_uid == nobody.uid
    finally:  # root runs the server as the same account
        Cluster(home / "pg").remove()


@as_root
@pytest.mark.parametrize("inside", ["", "pg"])
def test_folder_of_another_user_is_refused_in_one_line(folder: Path, inside: str) -> None:
    nobody = server_account()
    if not nobody.reaches(find_bindir() / "postgres"):
        pytest.skip("the binaries are out of an ordinary user's reach")
    done = run_as(nobody.uid, folder / inside)
    assert done.returncode == 1
    assert "cannot be written: Permission denied; run as its owner" in done.stderr


def run_as(uid: int, root: Path) -> subprocess.CompletedProcess[str]:
    """Change the user after the imports: the interpreter may be out of the other's reach."""
    return subprocess.run(
        [sys.executable, "-c", STARTER, str(root), str(uid)],
        capture_output=True,
        text=True,
        check=False,
    )


def write_data(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    (folder / "PG_VERSION").write_text(f"{version}\n")


def test_data_of_another_version_are_refused(folder: Path) -> None:
    server = Cluster(folder / "pg")
    new = server.paths.major
    write_data(folder / "pg" / f"pg{new - 2}", f"{new - 2}")
    write_data(folder / "pg" / f"pg{new - 1}", f"{new - 1}")
    with pytest.raises(PostgresError) as refused:
        server.start()
    message = str(refused.value)
    assert f"{folder}/pg/pg{new - 1} was written by PostgreSQL {new - 1}" in message
    assert f"is PostgreSQL {new} and cannot read it" in message
    for part in (
        "MAIL_PG_BIN",
        "`mail-assets backup --all FOLDER`",
        "`mail-assets restore FOLDER`",
    ):
        assert part in message
    assert not server.paths.data.exists(), "an empty cluster was begun"


def test_data_set_aside_do_not_matter(folder: Path) -> None:
    for name in ("pg17.kept", "pg17.new", "pg_17", "pg9.6"):
        write_data(folder / "pg" / name, "9.6" if name == "pg9.6" else "17")
    assert Cluster(folder / "pg").start().running()


def test_data_of_this_version_are_used(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    server.stop()
    write_data(folder / "pg" / "pg9", "9")
    assert server.start().running()


def shown(server: Cluster, name: str) -> str:
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


def test_new_server_has_our_settings(server: Cluster) -> None:
    assert shown(server, "random_page_cost") == "1.1"
    assert shown(server, "max_wal_size") == "4GB"
    assert ours(server).stat().st_uid == server.account.uid


def test_server_reads_changed_settings(server: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "SERVER_SETTINGS", "random_page_cost = 1.7\n")
    before = (server.paths.data / "postmaster.pid").read_text().split()[0]
    server.start()
    await_setting(server, "random_page_cost", "1.7")
    assert (server.paths.data / "postmaster.pid").read_text().split()[0] == before


def test_unchanged_settings_are_left_alone(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(server.paths.data.glob("*.conf"))
    before = [file.stat().st_ino for file in files]
    monkeypatch.setattr(subprocess, "run", None)  # nor is the server asked to read them
    server.start()
    assert [file.stat().st_ino for file in files] == before


@pytest.mark.parametrize("by", ["include", "alter system"])
def test_users_own_settings_stay_and_win(
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


def test_link_at_our_file_is_not_followed(server: Cluster, folder: Path) -> None:
    target = folder / "elsewhere"
    target.write_text("kept")
    ours(server).with_name(f"{FILE}.new").symlink_to(target)
    ours(server).write_text("")
    server.start()
    assert target.read_text() == "kept"
    assert "random_page_cost" in ours(server).read_text()
