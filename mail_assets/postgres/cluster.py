"""A private PostgreSQL server in one folder, for those who have none of their own.

What a caller gets: one cluster (`pg18`, the major version is in the name); one Unix
socket in a directory of mode 0700 and no TCP port, so that `trust` needs no password,
nothing clashes with another server and other users are shut out; a server that outlives
the process that started it; any number of processes may call `start` at once, and one of
them starts the server.
What does not live here: databases and migrations (database.py).
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from mail_assets.postgres.account import server_account
from mail_assets.postgres.binaries import find_bindir, major_version, reachable_bindir
from mail_assets.postgres.cluster_paths import PORT, make_private, reachable_paths
from mail_assets.postgres.data_version import require_same_version
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import LOCALE, Programs
from mail_assets.postgres.server_log import former_log, rotate_log
from mail_assets.postgres.server_settings import update_settings
from mail_assets.postgres.stale_lock import is_server_alive, remove_stale_lock

INITDB_OPTIONS = ("-U", "postgres", "-E", "UTF8", "-A", "trust", f"--locale={LOCALE}")

#: pg_ctl starts the server through a shell, with the paths in double quotes.
UNQUOTABLE = frozenset('"$`\\\n')

START_TIMEOUT = 60  # seconds


class Cluster:
    """One PostgreSQL cluster below `root`, which is created if missing.

    Attributes:
        account: the account that runs the server.
        paths: its data directory, log file and socket; elsewhere if root's folder is out of the
            account's reach.
    """

    def __init__(self, root: Path, binaries: Path | None = None) -> None:
        """`binaries` are those of another version than `find_bindir` finds."""
        self.account = server_account()
        binaries = reachable_bindir((binaries or find_bindir()).resolve(), self.account)
        self._major = major_version(binaries)
        self.paths = reachable_paths(root, self._major, self.account)
        self._programs = Programs(binaries, self.account, self.paths.log)

    def dsn(self, database: str, scheme: str = "postgresql") -> str:
        """Return a URL for `database`.

        psycopg 3 wants the scheme `postgresql` and rejects any other; Dagster needs
        `postgresql+psycopg2`.
        """
        host = quote(str(self.paths.socket_folder), safe="/")
        return f"{scheme}://postgres@/{quote(database)}?host={host}&port={PORT}"

    def running(self) -> bool:
        """Return whether the server answers (it may still be starting or stopping).

        A handshake, never a look at the process: an unreaped zombie postmaster passes
        `kill(pid, 0)` and `pg_ctl status`.
        """
        return self._answer() in (Ping.OK, Ping.REJECT)

    def start(self) -> Self:
        """Make the cluster if there is none, start it if it is down, and wait.

        A running server reads settings that have changed; those that need a restart, such as
        shared_buffers, wait for the next start: it may be in use by others.

        Raises:
            PostgresError: it does not start, and the message ends with the server's log; or there
                are data of another major version, and it says how to take them over.
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
                if update_settings(paths.data, self.account):
                    self._programs.run("pg_ctl", "-D", paths.data, "reload")
                return self
            require_same_version(paths, self._programs.folder)
            make_private(paths.socket_folder, self.account)
            paths.log.touch()
            os.chown(paths.log, self.account.uid, self.account.gid)
            if not (paths.data / "PG_VERSION").exists():
                self._initialise()
            update_settings(paths.data, self.account)
            remove_stale_lock(paths.data, paths.socket_folder)
            where = f"-k {shlex.quote(str(paths.socket_folder))} -p {PORT}"
            self._programs.run(
                "pg_ctl", "-D", paths.data, "-w", "-t", START_TIMEOUT, "-l", paths.log, "-o", where,
                "start",
            )  # fmt: skip
        return self

    def stop(self) -> bool:
        """Stop the server, rolling back what is not committed; return whether it was up."""
        if not self.paths.data.exists():
            return False
        with self._locked():
            up = self.running()
            if up:
                self._programs.run("pg_ctl", "-D", self.paths.data, "-w", "-m", "fast", "stop")
        return up

    def remove(self) -> None:
        """Stop the server and delete its data, log and socket."""
        self.stop()
        paths = self.paths
        for folder in (paths.data, paths.socket_folder):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (paths.log, former_log(paths.log), paths.lock):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it may hold what is not ours
            paths.root.rmdir()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        root = self.paths.root
        try:
            root.mkdir(parents=True, exist_ok=True)
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
        """Return OK: accepting connections, REJECT: starting or stopping, else: nobody there.

        By libpq in this process and not by pg_isready: gRPC, which Dagster's code server calls in
        threads, breaks processes that are started meanwhile (1 of 180 died of a SIGSEGV).
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
        """Wait out a recovery, a shutdown or a sudden end; return whether connections are accepted.

        A server that was killed closes its socket a moment before its process has ended.
        """
        deadline = time.monotonic() + START_TIMEOUT
        while (answer := self._answer()) != Ping.OK and time.monotonic() < deadline:
            if answer != Ping.REJECT and not is_server_alive(self.paths.data):
                return False
            time.sleep(0.05)
        return answer == Ping.OK

    def _initialise(self) -> None:
        """Run initdb aside and rename: a killed initdb leaves no half-made cluster."""
        data = self.paths.data
        fresh = data.with_name(f"{data.name}.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        make_private(fresh, self.account)
        options = [*INITDB_OPTIONS]
        if self._major >= 17:
            options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._programs.run("initdb", "-D", fresh, *options)
        update_settings(fresh, self.account)
        fresh.rename(data)
