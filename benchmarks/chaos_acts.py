"""Acts of benchmarks.chaos: each disturbs a backfill once, and undoes what it must."""

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from mail_assets.postgres.database import MAIL
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.errors import PostgresError
from mail_assets_tests.servers.faulty_proxy import FaultyProxy

STALL = (1.0, 6.0)  # seconds in which nothing passes
FULL = (1.0, 4.0)  # seconds in which nothing can be written
SMALL_FILE = 4_096  # bytes that a file may have where the disk is not ours to fill

START_SECONDS = 120

#: Rows that nothing of ours changes so: no trigger fires, no record notices.
DAMAGED_ROWS = (
    *(
        f"delete from {table} where ctid = (select ctid from {table} order by random() limit 1)"
        for table in (
            *("messages", "archive_entries", "senders", "chunks", "threads", "vectors", "words"),
            "thread_summaries",
        )
    ),
    *(
        f"update {table} set {change} "
        f"where ctid = (select ctid from {table} order by random() limit 1)"
        for table, change in {
            "messages": "body_text = 'other'",
            "chunks": "text = 'other'",
            "threads": "depth = 99",
            "thread_summaries": "sentences = '[]'",
        }.items()
    ),
)
#: Files that are cut or overwritten, below the home.
DAMAGED_FILES = (
    *("store/archives/**/*", "store/embeddings/**/*.parquet"),
    *("words/*/data/*", "words/*/_indices/*/*.lance", "vectors/*/data/*"),
)

#: An act says what it did; None where there was nothing to do it to.
Act = Callable[[random.Random], str | None]


def running(home: Path) -> Iterator[int]:
    """Yield the Python processes of a home's backfill."""
    mark = f"MAIL_HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().partition(b"\0")[0]
            # not the server, whose path has a "python" in it
            if Path(os.fsdecode(program)).name.startswith("python") and mark in (
                folder / "environ"
            ).read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:  # it has just ended
            continue


class Acts:
    """The acts on one home, whose server is reached through one proxy, S3 through another."""

    def __init__(
        self, home: Path, cluster: Cluster, proxies: dict[str, FaultyProxy], own_disk: bool
    ) -> None:
        self._home, self._cluster, self._proxies = home, cluster, proxies
        self._full = self._fill_disk if own_disk else self._limit_files
        self.damaged = False

    @property
    def all(self) -> list[Act]:
        """All acts; none is likelier than another."""
        return [
            self.kill_worker,
            self.kill_backfill,
            self.kill_server,
            self.kill_session,
            self.reset,
            self.stall,
            self._full,
            self.damage_row,
            *([] if "S3" in self._proxies else [self.damage_file]),
        ]

    def restore(self) -> None:
        """Start the server where it is down, as a service manager does.

        Raises:
            PostgresError: it does not start.
        """
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._cluster.start()
                return
            except PostgresError:  # a backend of the one that was killed may still be ending
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def damage_row(self, chance: random.Random) -> str | None:
        """Delete or change a row."""
        with (
            suppress(psycopg.Error),
            psycopg.connect(self._cluster.dsn(MAIL), autocommit=True) as connection,
        ):
            connection.execute("set session_replication_role = replica")
            connection.execute("set lock_timeout = '1s'")
            if connection.execute(chance.choice(DAMAGED_ROWS)).rowcount:
                self.damaged = True
                return "damaged a row"
        return None

    def damage_file(self, chance: random.Random) -> str | None:
        """Cut a file in half, or overwrite half of it."""
        found = [*self._home.glob(chance.choice(DAMAGED_FILES))]
        files = sorted(path for path in found if path.is_file())
        if not files:
            return None
        path = chance.choice(files)
        with suppress(FileNotFoundError), path.open("r+b") as file:
            half = path.stat().st_size // 2
            if chance.random() < 0.5:
                file.truncate(half)
            else:
                file.write(b"\xff" * half)
            self.damaged = True
            return f"damaged a file of {path.relative_to(self._home).parts[0]}"
        return None

    def kill_worker(self, chance: random.Random) -> str | None:
        """Kill a process of the backfill that is not its first."""
        _first, *others = sorted(running(self._home)) or [0]
        if not others:
            return None
        os.kill(chance.choice(others), signal.SIGKILL)
        return "killed a worker"

    def kill_backfill(self, _chance: random.Random) -> str | None:
        """Kill all processes of the backfill."""
        victims = [*running(self._home)]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return "killed the backfill" if victims else None

    def kill_server(self, _chance: random.Random) -> str | None:
        """Kill the first process of PostgreSQL; its others end, and it is started again."""
        os.kill(self._server(), signal.SIGKILL)
        self.restore()
        return "killed PostgreSQL"

    def kill_session(self, chance: random.Random) -> str | None:
        """Kill a process of PostgreSQL, which ends all sessions and recovers."""
        children = Path(f"/proc/{self._server()}/task/{self._server()}/children").read_text()
        with suppress(ProcessLookupError):
            os.kill(int(chance.choice(children.split())), signal.SIGKILL)
        return "killed a process of PostgreSQL"

    def reset(self, chance: random.Random) -> str | None:
        """Reset all connections to PostgreSQL, or to S3."""
        name = chance.choice([*self._proxies])
        self._proxies[name].reset_connections()
        return f"reset the connections to {name}"

    def stall(self, chance: random.Random) -> str | None:
        """Let nothing pass to PostgreSQL, or to S3, for some seconds."""
        name = chance.choice([*self._proxies])
        self._proxies[name].pause()
        time.sleep(chance.uniform(*STALL))
        self._proxies[name].resume()
        return f"stalled the connections to {name}"

    def _fill_disk(self, chance: random.Random) -> str | None:
        """Leave no room where the home is, for some seconds."""
        ballast = self._home.parent / "ballast"
        try:
            with ballast.open("wb") as file, suppress(OSError):  # others write too: it is full
                while free := shutil.disk_usage(ballast).free:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
            time.sleep(chance.uniform(*FULL))
        finally:
            ballast.unlink()
        self.restore()  # it stops where it cannot write its log
        return "filled the disk"

    def _limit_files(self, chance: random.Random) -> str | None:
        """Let no process of the backfill write more than small files, for some seconds."""
        with limited([*running(self._home)]):
            time.sleep(chance.uniform(*FULL))
        return "limited the size of files"

    def _server(self) -> int:
        return int((self._cluster.paths.data / "postmaster.pid").read_text().split()[0])


@contextmanager
def limited(processes: list[int]) -> Iterator[None]:
    """Limit the size of the files that some processes write, while the block runs."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    for pid in processes:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL_FILE, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
