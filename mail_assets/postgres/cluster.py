"""A private PostgreSQL server in one directory, for those who have none of their own.

What a caller gets: one cluster (`pg18`, the major version is in the name); one Unix
socket in a directory of mode 0700 and no TCP port, so that `trust` needs no password,
nothing clashes with another server and other users are shut out; a server that outlives
the process that started it; any number of processes may call `start` at once, and one of
them starts the server.
What does not live here: the choice of binaries and account (binaries.py), databases and
migrations (database.py).
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote

from mail_assets.postgres.binaries import (
    PostgresError,
    digest,
    find_bindir,
    major_version,
    reachable_bindir,
    require_owner,
    server_account,
    shared_dir,
)

#: Appended to postgresql.auto.conf once, when the cluster is made.
CONF = """listen_addresses = ''
max_connections = 100
shared_buffers = '256MB'
maintenance_work_mem = '512MB'
max_wal_size = '4GB'
random_page_cost = 1.1
"""

#: Fixed on purpose, unlike TMPDIR, which differs between a shell, a service and cron:
#: every process must come to the same path.
SHORT_DIR = Path("/tmp")

#: pg_ctl starts the server through a shell, with the paths in double quotes.
UNQUOTABLE = frozenset('"$`\\\n')

#: sun_path holds 108 bytes on Linux and 104 on macOS, and the socket's lock file adds
#: "/.s.PGSQL.5432.lock" to the directory.
MAX_SOCKET_DIR = 80

#: With LC_CTYPE=C text search takes typographic quotes and dashes for letters, even with
#: the builtin provider; on macOS the postmaster dies without a valid LC_ALL.
LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"

PORT = 5432  # only part of the socket's file name; no TCP port is opened
START_TIMEOUT = 60


class Cluster:
    """One PostgreSQL cluster below `root`, which is created if missing.

    Attributes:
        bin: the binaries in use (a copy, if root's are out of the server's reach).
        data, log, sock: the data directory, the log file, the socket's directory.
    """

    def __init__(self, root: Path) -> None:
        found = find_bindir()
        self.account = server_account()
        self.bin = reachable_bindir(found, self.account)
        self.major = major_version(self.bin)
        self._place(root.resolve())
        if self.account.switch:
            self._move_into_reach()

    def dsn(self, database: str, scheme: str = "postgresql") -> str:
        """Return a URL for `database`.

        psycopg 3 wants the scheme `postgresql` and rejects any other; Dagster needs
        `postgresql+psycopg2`.
        """
        host = quote(str(self.sock), safe="/")
        return f"{scheme}://postgres@/{database}?host={host}&port={PORT}"

    def running(self) -> bool:
        """Say whether the server answers (it may still be starting or stopping).

        A handshake, never a look at the process: an unreaped zombie postmaster passes
        `kill(pid, 0)` and `pg_ctl status`.
        """
        return self._answer() in (0, 1)

    def start(self) -> Self:
        """Make the cluster if there is none, start it if it is down, and wait.

        Raises:
            PostgresError: it does not start; the message ends with the server's log.
        """
        if UNQUOTABLE.intersection(str(self.root)):
            raise PostgresError(
                f'{str(self.root)!r}: pg_ctl takes no path with " $ ` \\ or a line break in it; '
                "set MAIL_HOME to another"
            )
        with self._locked():
            if self._settled():
                return self
            self._claim(self.sock)
            self.log.touch()
            os.chown(self.log, self.account.uid, self.account.gid)
            if not (self.data / "PG_VERSION").exists():
                self._initialise()
            self._drop_dead_lock()
            where = f"-k {shlex.quote(str(self.sock))} -p {PORT}"
            self._call(
                "pg_ctl", "-D", self.data, "-w", "-t", START_TIMEOUT, "-l", self.log, "-o", where,
                "start",
            )  # fmt: skip
        return self

    def stop(self) -> bool:
        """Stop the server, rolling back what is not committed; say whether it was up."""
        if not self.data.exists():
            return False
        with self._locked():
            up = self.running()
            if up:
                self._call("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop")
        return up

    def remove(self) -> None:
        """Stop the server and delete its data, log and socket."""
        self.stop()
        for path in (self.data, self.sock):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self.log, self.root / ".lock"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it may hold what is not ours
            self.root.rmdir()

    # -- where things are ----------------------------------------------------------

    def _place(self, root: Path) -> None:
        self.root = root
        self.data = root / f"pg{self.major}"
        self.log = root / "postgres.log"
        self.sock = root / "sock"
        # libpq and the server both take a comma for the end of a directory
        if len(os.fsencode(self.sock)) > MAX_SOCKET_DIR or "," in str(self.sock):
            self.sock = SHORT_DIR / f"mailpg-{os.geteuid()}-{digest(root)}"

    def _move_into_reach(self) -> None:
        """Put data that the account could not reach below `SHARED_DIR`."""
        self.root.mkdir(parents=True, exist_ok=True)
        if not self.account.reaches(self.root):
            shared = shared_dir() / f"data-{digest(self.root)}"
            shared.mkdir(exist_ok=True)
            shared.chmod(0o755)
            self._place(shared)

    def _claim(self, path: Path) -> None:
        """Make `path` a directory that only the server's account can enter."""
        path.mkdir(mode=0o700, exist_ok=True)
        require_owner(path, {self.account.uid, os.geteuid()})
        path.chmod(0o700)
        os.chown(path, self.account.uid, self.account.gid)

    # -- starting ------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = (self.root / ".lock").open("w")
        except OSError as error:
            raise PostgresError(
                f"{self.root} cannot be written: {error.strerror}; "
                "run as its owner, or set MAIL_HOME to another folder"
            ) from error
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _call(self, program: str, *args: object, check: bool = True) -> int:
        """Run one of the binaries, its output going to the log.

        Never to a pipe: the postmaster inherits it, and whoever reads it waits for the
        server to end.
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        environment["LC_ALL"] = LOCALE
        command = [str(self.bin / program), *map(str, args)]
        with (self.log if check else Path(os.devnull)).open("ab") as output:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment,
                check=False,
                **self.account.switch,
            ).returncode
        if check and code:
            tail = "".join(self.log.read_text(errors="replace").splitlines(True)[-15:])
            raise PostgresError(f"{program} failed ({code}); {self.log} ends:\n{tail}")
        return code

    def _answer(self) -> int:
        """Return 0: accepting connections, 1: starting or stopping, else: nobody there."""
        if not (self.data / "postmaster.pid").exists():
            return 2
        return self._call("pg_isready", "-q", "-h", self.sock, "-p", PORT, check=False)

    def _settled(self) -> bool:
        """Wait out a recovery or a shutdown; say whether connections are accepted."""
        deadline = time.monotonic() + START_TIMEOUT
        while (answer := self._answer()) == 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        return answer == 0

    def _initialise(self) -> None:
        """Run initdb aside and rename: a killed initdb leaves no half-made cluster."""
        fresh = self.data.with_name(f"{self.data.name}.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        self._claim(fresh)
        args = ["-U", "postgres", "-E", "UTF8", "-A", "trust", f"--locale={LOCALE}"]
        if self.major >= 17:
            args += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._call("initdb", "-D", fresh, *args)
        with (fresh / "postgresql.auto.conf").open("a") as handle:
            handle.write(CONF)
        fresh.rename(self.data)

    def _drop_dead_lock(self) -> None:
        """Clear the lock files of a dead postmaster whose pid is still taken (Linux).

        A killed postmaster stays in the process table until its parent reaps it: in a
        container without an init process, for ever. In a new container, or after a boot,
        its pid may be that of any other program. PostgreSQL sees a live pid and refuses to
        start. The data are safe: while one of its backends is still busy in a query, a new
        server refuses to start for the shared memory's sake, and `start` raises; try again
        when the query has ended.
        """
        lock = self.data / "postmaster.pid"
        try:
            pid = int(lock.read_text().split()[0])
            status = Path(f"/proc/{pid}/stat").read_text()
        except (OSError, ValueError, IndexError):
            return
        name, _, rest = status.partition("(")[2].rpartition(")")
        if name == "postgres" and rest.split()[0] != "Z":
            return
        for path in (lock, *self.sock.glob(f".s.PGSQL.{PORT}*")):
            path.unlink(missing_ok=True)
