"""Run a private PostgreSQL server in one folder, for users without a server of their own.

The name of a cluster has its major version (`pg18`). The server listens only on a Unix socket in a
directory of mode 0700, and opens no TCP port: so `trust` needs no password, no port conflicts with
another server, and other users cannot connect. The server outlives the process that started it. Any
number of processes may call `start` at the same time; one of them starts it. database.py creates
its databases.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from mail_assets.files import make_private_folder
from mail_assets.postgres.programs import (
    LOCALE,
    OldDataError,
    PostgresError,
    Programs,
    ServerAccount,
    find_bindir,
    former_log,
    major_version,
    reachable_bindir,
    require_owner,
    rotate_log,
    server_account,
    shared_folder,
    short_digest,
)

PORT = 5432  # only part of the socket's file name; no TCP port is opened

#: Not TMPDIR, which differs between a shell, a service and cron; all need the same path.
SHORT_FOLDER = Path("/tmp")

#: Longest socket directory in bytes: sun_path has 108 bytes on Linux and 104 on macOS, and the
#: socket's lock file adds "/.s.PGSQL.5432.lock".
MAX_SOCKET_PATH = 80

INITDB_OPTIONS = ("-U", "postgres", "-E", "UTF8", "-A", "trust", f"--locale={LOCALE}")

#: Characters not allowed in paths: pg_ctl starts the server in a shell, with double quotes.
UNQUOTABLE = frozenset('"$`\\\n')

START_TIMEOUT = 60  # seconds

#: Our settings are in a separate file, which postgresql.conf includes. Users' settings go below the
#: include or in ALTER SYSTEM: PostgreSQL uses the last value that it reads, and reads
#: postgresql.auto.conf last.
FILE = "mail_assets.conf"
INCLUDE = f"include_if_exists '{FILE}'"
HEADER = """# Written by mail_assets, which writes it again when its settings change.
# Your own settings: in postgresql.conf below the include of this file, or by ALTER SYSTEM.
"""
SERVER_SETTINGS = """listen_addresses = ''
max_connections = 100
shared_buffers = '256MB'
maintenance_work_mem = '512MB'
max_wal_size = '4GB'
random_page_cost = 1.1
"""

_OLD_DATA = """\
{data} was written by PostgreSQL {old}; {binaries} is PostgreSQL {new} and cannot read it.
To move to {new}: set MAIL_PG_BIN to the programs of PostgreSQL {old} and run \
`mail-assets backup --all FOLDER` and `mail-assets down`; rename {data} to pg{old}.old, unset \
MAIL_PG_BIN and run `mail-assets restore FOLDER`.
To stay with {old}: leave MAIL_PG_BIN set."""


@dataclass(frozen=True)
class ClusterPaths:
    """Paths of a cluster of one major version of PostgreSQL, below `root`."""

    root: Path
    major: int

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.root / f"pg{self.major}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.root / "postgres.log"

    @property
    def lock(self) -> Path:
        """The file that is locked while the server is started or stopped."""
        return self.root / ".lock"

    @property
    def socket_folder(self) -> Path:
        """The folder of the socket; outside `root` if the path there is too long for a socket."""
        folder = self.root / "sock"
        # for libpq and the server a comma ends a directory
        if len(os.fsencode(folder)) > MAX_SOCKET_PATH or "," in str(folder):
            return SHORT_FOLDER / f"mailpg-{os.geteuid()}-{short_digest(self.root)}"
        return folder


class Cluster:
    """One PostgreSQL cluster below `root`, which is created if missing.

    Attributes:
        account: the account that runs the server.
        paths: the data directory, log file and socket; in the shared folder if the account cannot
            reach `root`.
    """

    def __init__(self, root: Path) -> None:
        self.account = server_account()
        binaries = reachable_bindir(find_bindir().resolve(), self.account)
        self._major = major_version(binaries)
        self.paths = ClusterPaths(_reachable_root(root.resolve(), self.account), self._major)
        self._programs = Programs(binaries, self.account, self.paths.log)

    def dsn(self, database: str, scheme: str = "postgresql") -> str:
        """Return a URL for `database`.

        psycopg 3 needs the scheme `postgresql`; Dagster needs `postgresql+psycopg2`.
        """
        host = quote(str(self.paths.socket_folder), safe="/")
        return f"{scheme}://postgres@/{quote(database)}?host={host}&port={PORT}"

    def running(self) -> bool:
        """Return whether the server answers; it may still be starting or stopping.

        The test is a connection, because the process of a killed server exists until its parent
        reaps it.
        """
        return self._answer() in (Ping.OK, Ping.REJECT)

    def start(self) -> Self:
        """Create the cluster if there is none, start it if it is down, and wait until it is up.

        A running server reloads changed settings. Settings that need a restart, such as
        shared_buffers, apply at the next start, because other processes may be using the server.

        Raises:
            PostgresError: the server does not start; the message ends with its log.
            OldDataError: the data are of another major version.
        """
        paths = self.paths
        if UNQUOTABLE.intersection(str(paths.root)):
            raise PostgresError(
                f'{str(paths.root)!r}: pg_ctl takes no path with " $ ` \\ or a line break in it; '
                "set MAIL_HOME to another"
            )
        with self._locked():
            rotate_log(paths.log)
            if self._wait_until_settled():
                if _update_settings(paths.data, self.account):
                    self._programs.run("pg_ctl", "-D", paths.data, "reload")
                return self
            _require_same_version(paths, self._programs.folder)
            _make_private(paths.socket_folder, self.account)
            paths.log.touch(mode=0o600)
            os.chown(paths.log, self.account.uid, self.account.gid)
            if not (paths.data / "PG_VERSION").exists():
                self._initialise()
            _update_settings(paths.data, self.account)
            remove_stale_lock(paths.data, paths.socket_folder)
            where = f"-k {shlex.quote(str(paths.socket_folder))} -p {PORT}"
            self._programs.run(
                "pg_ctl", "-D", paths.data, "-w", "-t", START_TIMEOUT, "-l", paths.log, "-o", where,
                "start",
            )  # fmt: skip
        return self

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> bool:
        """Stop the server and roll back open transactions; return whether it was up."""
        if not self.paths.data.exists():
            return False
        with self._locked():
            up = self.running()
            if up:
                self._programs.run("pg_ctl", "-D", self.paths.data, "-w", "-m", mode, "stop")
        return up

    def remove(self) -> None:
        """Stop the server and delete its data, log and socket."""
        self.stop("immediate")  # no shutdown checkpoint, because the data are deleted
        paths = self.paths
        for folder in (paths.data, paths.socket_folder):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (paths.log, former_log(paths.log), paths.lock):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder may have other files
            paths.root.rmdir()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        root = self.paths.root
        try:
            if not root.exists():  # new, or deleted meanwhile
                make_private_folder(root)
                _reachable_root(root, self.account)
            handle = self.paths.lock.open("w")
        except OSError as error:
            raise PostgresError(
                f"{root} cannot be written: {error.strerror}; "
                "run as its owner, or set MAIL_HOME to another folder"
            ) from error
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _answer(self) -> Ping:
        """Return OK (accepts connections), REJECT (starting or stopping), or another (no server).

        This uses libpq in this process, not pg_isready: gRPC, which Dagster's code server uses in
        threads, breaks processes that are started meanwhile.
        """
        if not (self.paths.data / "postmaster.pid").exists():
            return Ping.NO_RESPONSE
        place = make_conninfo(
            host=str(self.paths.socket_folder),
            port=PORT,
            user="postgres",
            dbname="postgres",
            connect_timeout=START_TIMEOUT,
        )
        return Ping(PGconn.ping(place.encode()))

    def _wait_until_settled(self) -> bool:
        """Wait for a recovery or shutdown to end; return whether connections are accepted.

        A killed server closes its socket a moment before its process has ended.
        """
        deadline = time.monotonic() + START_TIMEOUT
        while (answer := self._answer()) != Ping.OK and time.monotonic() < deadline:
            if answer != Ping.REJECT and not _is_server_alive(self.paths.data):
                return False
            time.sleep(0.05)
        return answer == Ping.OK

    def _initialise(self) -> None:
        # created under another name and renamed, so that a killed initdb leaves no partial cluster
        data = self.paths.data
        fresh = data.with_name(f"{data.name}.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        _make_private(fresh, self.account)
        options = [*INITDB_OPTIONS]
        if self._major >= 17:
            options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._programs.run("initdb", "-D", fresh, *options)
        _update_settings(fresh, self.account)
        fresh.rename(data)


def _reachable_root(root: Path, account: ServerAccount) -> Path:
    if not account.switch:
        return root
    make_private_folder(root)
    if account.reaches(root):
        return root
    shared = shared_folder() / f"data-{short_digest(root)}"
    if not shared.exists() and _admit(root, account):
        return root
    shared.mkdir(exist_ok=True)
    shared.chmod(0o755)
    return shared


def _admit(root: Path, account: ServerAccount) -> bool:
    """Let the server's account, and no other account, enter root's own private folder.

    Processes that start at the same time all get the same result.
    """
    info = root.lstat()
    is_ours = info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) in (0o700, 0o710)
    if not is_ours or not account.reaches(root.parent):
        return False
    os.chown(root, -1, account.gid)
    root.chmod(0o710)
    return account.reaches(root)


def _make_private(path: Path, account: ServerAccount) -> None:
    path.mkdir(mode=0o700, exist_ok=True)
    require_owner(path, {account.uid, os.geteuid()})
    path.chmod(0o700)
    os.chown(path, account.uid, account.gid)


def _require_same_version(paths: ClusterPaths, binaries: Path) -> None:
    """Refuse to create an empty cluster next to data of another major version."""
    if (paths.data / "PG_VERSION").exists():
        return
    majors = [
        int(folder.name.removeprefix("pg"))
        for folder in paths.root.glob("pg*")
        if _holds_data(folder)
    ]
    if majors:
        data = ClusterPaths(paths.root, max(majors)).data
        raise OldDataError(
            _OLD_DATA.format(data=data, old=max(majors), binaries=binaries, new=paths.major)
        )


def _holds_data(folder: Path) -> bool:
    # false for a renamed folder, and for one whose initdb was killed
    version = folder / "PG_VERSION"
    major = folder.name.removeprefix("pg")
    return major.isdigit() and version.exists() and version.read_text().strip() == major


def _is_server_alive(data: Path) -> bool | None:
    """Return whether the process in the lock file is a living server.

    None: there is no lock file, no such process, or no /proc (it exists on Linux only).
    """
    try:
        pid = int((data / "postmaster.pid").read_text().split()[0])
        status = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError, IndexError):
        return None
    name, _, rest = status.partition("(")[2].rpartition(")")
    return name == "postgres" and rest.split()[0] != "Z"


def remove_stale_lock(data: Path, socket_folder: Path) -> None:
    """Delete the lock files of a dead server; do nothing while it is alive (Linux only).

    A killed server stays in the process table until its parent reaps it; in a container without an
    init process, that is forever. In a new container, or after a boot, another program may have its
    pid. In both cases PostgreSQL sees a live pid and refuses to start. Deleting the lock is safe:
    while a backend still runs a query, a new server refuses to start because of the shared memory.
    """
    if _is_server_alive(data) is False:
        for path in (data / "postmaster.pid", *socket_folder.glob(".s.PGSQL.*")):
            path.unlink(missing_ok=True)


def _update_settings(data: Path, account: ServerAccount) -> bool:
    """Update the settings in a data directory; return whether a file was written."""
    included = (data / "postgresql.conf").read_text()
    if INCLUDE not in included.splitlines():
        included = f"{included.rstrip()}\n\n{INCLUDE}\n"
    wanted = {FILE: HEADER + SERVER_SETTINGS, "postgresql.conf": included}
    differing = [name for name, text in wanted.items() if _read(data / name) != text]
    for name in differing:
        _replace(data / name, wanted[name], account)
    return bool(differing)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _replace(path: Path, text: str, account: ServerAccount) -> None:
    """Replace a file atomically, so that a starting server never reads an incomplete one.

    The folder belongs to the server's account, so root must not follow links in it.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with fresh.open("x") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fchown(file.fileno(), account.uid, account.gid)
        file.write(text)
    fresh.replace(path)
