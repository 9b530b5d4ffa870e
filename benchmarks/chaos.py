"""Compare a backfill with several processes, under random faults, with an undisturbed one.

    python -m benchmarks.chaos ARCHIVES [--acts 100] [--ends 5] [--every 4] [--jobs 2] [--seed 1]
                               [--s3] [--fast] [--repository CLONE]

ARCHIVES is a folder of monthly mbox files, CLONE a git repository that they discuss. The home is
first filled without faults. Then it is emptied, and the same command runs while a fault (an *act*)
happens every few seconds. The seed chooses it: a worker, the backfill, PostgreSQL or one of its
processes is killed (SIGKILL); connections to PostgreSQL or S3 are reset or stall; the disk is full;
a row or a file is damaged.

A backfill that failed is started again, sometimes with --rebuild, and sometimes after the commands
of `doctor --deep` have repaired the damage. When it succeeds, or has had its share of the acts,
damage is repaired, and a last backfill runs without acts. Then each table, file and index is
compared with the first result, except times and counters. The next round starts with an empty home.
The exit code is 1 if anything differs.

PostgreSQL is a separate server, reached through a proxy, and is started again when it has stopped.
With --s3 all files and indexes are on a Ceph gateway, reached through another proxy. For root, all
local files are on a small disk in memory, which an act fills. Other users get a limit on the size
of files instead.
"""

import argparse
import json
import math
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

import boto3
import psycopg

from benchmarks.end_state import (
    Digests,
    Tables,
    digest_home,
    list_differences,
    list_differing_rows,
    read_tables,
)
from benchmarks.pipeline import LIST, machine
from mail_assets.postgres.database import DAGSTER, MAIL, embedded, embedded_dsn
from mail_assets.postgres.embedded import PORT, Cluster
from mail_assets.postgres.programs import PostgresError
from mail_assets.settings.settings import load_settings
from mail_assets.sources.urls import group_by_month
from mail_assets_tests.servers.ceph import KEY, serve_ceph
from mail_assets_tests.servers.faulty_proxy import FaultyProxy

STALL = (1.0, 6.0)  # seconds that a connection stalls
FULL = (1.0, 4.0)  # seconds that the disk is full
SMALL_FILE = 4_096  # largest file in bytes, if the disk itself cannot be filled

START_SECONDS = 120

#: Statements that damage a row. They run without triggers, so that no record of the change is made.
DAMAGED_ROWS = (
    *(
        f"delete from {table} where ctid = (select ctid from {table} order by random() limit 1)"
        for table in (
            *("messages", "archive_entries", "senders", "chunks", "threads", "vectors", "words"),
            *("thread_summaries", "patches", "patch_series", "patch_keys", "patch_states"),
            *("patch_outcomes", "contested_texts", "commits", "commit_links"),
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
            "patches": "title = 'other'",
            "patch_series": "state = 'rejected'",
            "patch_states": "state = 'rejected'",
            "commits": "subject = 'other'",
            "commit_links": "evidence = '{other}'",
            "patch_outcomes": "outcome = 'rejected'",
            "patch_keys": "at = 0",
        }.items()
    ),
)
#: Patterns of the files that are truncated or overwritten, relative to the home.
DAMAGED_FILES = (
    *("store/archives/**/*", "store/embeddings/**/*.parquet"),
    *("words/*/data/*", "words/*/_indices/*/*.lance", "vectors/*/data/*"),
)

#: An act returns a description of what it did, or None if it had no target.
Act = Callable[[random.Random], str | None]


def running(home: Path) -> Iterator[int]:
    """Yield the ids of the Python processes of a home's backfill."""
    mark = f"MAIL_HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().partition(b"\0")[0]
            # the path of the server also contains "python"
            if Path(os.fsdecode(program)).name.startswith("python") and mark in (
                folder / "environ"
            ).read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:  # the process has just ended
            continue


class Acts:
    """Acts on one home; proxies lead to its PostgreSQL server and to S3."""

    def __init__(
        self, home: Path, cluster: Cluster, proxies: dict[str, FaultyProxy], own_disk: bool
    ) -> None:
        self._home, self._cluster, self._proxies = home, cluster, proxies
        self._full = self._fill_disk if own_disk else self._limit_files
        self.damaged = False

    @property
    def all(self) -> list[Act]:
        """All acts, chosen with equal probability."""
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
        """Start the server if it is down, as a service manager does.

        Raises:
            PostgresError: the server does not start.
        """
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._cluster.start()
                return
            except PostgresError:  # a backend of the killed server may still be running
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
        """Truncate a file to half of its size, or overwrite half of it."""
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
        """Kill a process of the backfill other than its main process."""
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
        """Kill PostgreSQL's postmaster, which ends its other processes; start it again."""
        os.kill(self._server(), signal.SIGKILL)
        self.restore()
        return "killed PostgreSQL"

    def kill_session(self, chance: random.Random) -> str | None:
        """Kill one PostgreSQL process; the server then ends all sessions and recovers."""
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
        """Stall all connections to PostgreSQL, or to S3, for some seconds."""
        name = chance.choice([*self._proxies])
        self._proxies[name].pause()
        time.sleep(chance.uniform(*STALL))
        self._proxies[name].resume()
        return f"stalled the connections to {name}"

    def _fill_disk(self, chance: random.Random) -> str | None:
        """Fill the disk of the home for some seconds."""
        ballast = self._home.parent / "ballast"
        try:
            with ballast.open("wb") as file, suppress(OSError):  # raised when the disk is full
                while free := shutil.disk_usage(ballast).free:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
            time.sleep(chance.uniform(*FULL))
        finally:
            ballast.unlink()
        self.restore()  # the server stops if it cannot write its log
        return "filled the disk"

    def _limit_files(self, chance: random.Random) -> str | None:
        """Limit the size of files that the backfill can write, for some seconds."""
        with limited([*running(self._home)]):
            time.sleep(chance.uniform(*FULL))
        return "limited the size of files"

    def _server(self) -> int:
        return int((self._cluster.paths.data / "postmaster.pid").read_text().split()[0])


@contextmanager
def limited(processes: list[int]) -> Iterator[None]:
    """Limit the size of files that the processes can write, while the block runs."""
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


DISK = "2g"
CLI = (sys.executable, "-m", "mail_assets.cli")
MENDINGS = 6  # rounds of doctor: a repair can reveal more damage, in data made from the damaged
SHOWN, ROW = 10, 300  # printed rows of a table that differs, and characters of each row
REBUILT = 0.2  # probability that a start has --rebuild
BUCKET = "chaos"


def main() -> None:
    """Fill the home without acts, then with acts; compare, and print what happened."""
    parser = argparse.ArgumentParser(description="Compare a disturbed backfill with a quiet one.")
    parser.add_argument("archives", type=Path, help="a folder of monthly mbox files")
    parser.add_argument("--acts", type=int, default=100)
    parser.add_argument("--ends", type=int, default=5, help="minimum number of comparisons")
    parser.add_argument("--every", type=float, default=4, help="seconds between two acts")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--s3", action="store_true", help="files and indexes on a Ceph gateway")
    parser.add_argument("--fast", action="store_true", help="fill the static index")
    parser.add_argument("--repository", type=Path, help="a git repository that ARCHIVES discuss")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # runs all cleanup
    print(f"machine: {machine()}\ndata: {arguments.archives.name}, --jobs {arguments.jobs}")
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        world = stack.enter_context(open_world(folder, arguments))
        began = time.monotonic()
        world.finish()
        expected, rows = world.digest(), world.read_tables()
        print(f"in peace: {time.monotonic() - began:.0f} s, {len(expected)} tables, files, indexes")
        differences = disturb(world, expected, rows, arguments)
    sys.exit(1 if differences else 0)


def disturb(world: "World", expected: Digests, rows: Tables, arguments: argparse.Namespace) -> int:
    """Do all acts; return the number of differing tables, files and indexes."""
    chance = random.Random(arguments.seed)
    done: Counter[str] = Counter()
    ends = differences = starts = 0
    while done.total() < arguments.acts:
        world.empty()
        share = min(arguments.acts, math.ceil(arguments.acts * (ends + 1) / arguments.ends))
        while done.total() < share:
            starts += 1
            ended = world.run(chance, share - done.total(), arguments.every, done)
            if ended == 0:
                break
        world.finish()
        differing = list_differences(expected, world.digest())
        ends, differences = ends + 1, differences + len(differing)
        print(f"end {ends}: {differing or 'as in peace'}", flush=True)
        found = world.read_tables() if differing else {}
        for name in filter(found.get, differing):
            for row in islice(list_differing_rows(rows.get(name, []), found[name]), SHOWN):
                print(f"      {name} {row[:ROW]}", flush=True)
    for act, times in sorted(done.items()):
        print(f"{times:4} x {act}")
    print(f"{done.total()} acts, {starts} starts, {ends} ends, {differences} differences")
    return differences


class World:
    """A home with its server, filled by the command line."""

    def __init__(self, home: Path, command: list[str], environ: dict[str, str], acts: Acts) -> None:
        self._home, self._command, self._environ, self._acts = home, command, environ, acts
        self._log = home.parent.parent / "backfill.log"  # not on the disk that is filled

    def empty(self) -> None:
        """Delete all tables, files, indexes and runs."""
        self._acts.restore()
        embedded(self._home).remove()
        shutil.rmtree(self._home)
        self._home.mkdir()
        self._home.chmod(0o755)  # the server's account must be able to enter
        embedded_dsn(self._home, MAIL)
        empty_bucket(self._environ)

    def finish(self) -> None:
        """Repair any damage, and run the backfill to its end without acts."""
        self._acts.restore()
        if self._acts.damaged:
            self.mend()
            self._acts.damaged = False
        with self._log.open("w") as log:
            ended = subprocess.run(
                self._command, env=self._environ, stdout=log, stderr=log, check=False
            )
        if ended.returncode:
            raise SystemExit(f"the backfill failed:\n{self._log.read_text()[-3000:]}")

    def mend(self) -> None:
        """Run the commands that doctor prints, until it finds no more faults."""
        for _ in range(MENDINGS):
            done = subprocess.run(
                [*CLI, "doctor", "--deep", "--json"],
                env=self._environ, capture_output=True, text=True, check=False,
            )  # fmt: skip
            findings = [json.loads(line) for line in done.stdout.splitlines()]
            if not findings and done.returncode == 0:
                return
            if not findings:
                raise SystemExit(f"doctor failed:\n{done.stderr[-3000:]}")
            for remedy in dict.fromkeys(one["remedy"] for one in findings):
                print(f"      {remedy}", flush=True)
                command = remedy.replace("mail-assets ", f"{shlex.join(CLI)} ")
                with self._log.open("w") as log:
                    ended = subprocess.run(
                        command, shell=True, env=self._environ, stdout=log, stderr=log, check=False
                    )
                if ended.returncode:
                    print(f"      ended with {ended.returncode}: {self._log.read_text()[-2000:]}")
        raise SystemExit(f"doctor still finds faults after {MENDINGS} repairs: {findings}")

    def run(self, chance: random.Random, acts: int, every: float, done: Counter[str]) -> int:
        """Run the backfill, and do acts until it ends; return its exit code."""
        if self._acts.damaged and chance.random() < 0.5:
            self._acts.restore()
            self.mend()
            self._acts.damaged = False
        again = ["--rebuild"] if chance.random() < REBUILT else []
        if again:
            done["began with --rebuild"] += 1
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [*self._command, *again],
                env=self._environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(acts):
            try:
                process.wait(chance.uniform(every / 2, every * 3 / 2))
                break
            except subprocess.TimeoutExpired:
                happened = chance.choice(self._acts.all)(chance)
            if happened:
                done[happened] += 1
                print(f"{done.total():4}: {happened}", flush=True)
        code = process.wait()
        while [*running(self._home)]:  # its workers end a little later
            time.sleep(0.2)
        last = self._log.read_text().strip().splitlines()[-1:]
        print(f"      the backfill ended with {code}: {''.join(last)[:300]}", flush=True)
        return code

    def digest(self) -> Digests:
        """Return a digest of each table, file and index."""
        return digest_home(load_settings(self._environ), self._environ)

    def read_tables(self) -> Tables:
        """Return the rows of each table."""
        return read_tables(load_settings(self._environ))


@contextmanager
def open_world(folder: Path, arguments: argparse.Namespace) -> Iterator[World]:
    """Create a home with a PostgreSQL server behind a proxy, and with --s3 an S3 gateway."""
    home = folder / "home"  # always the same path, which is part of an index's identity
    home.mkdir()
    lists = folder / "lists.toml"
    lists.write_text(describe_lists(arguments.archives, arguments.repository))
    embedded_dsn(home, MAIL)
    cluster = embedded(home)
    with ExitStack() as stack:
        stack.callback(cluster.remove)
        socket = cluster.paths.socket_folder / f".s.PGSQL.{PORT}"
        proxies = {"PostgreSQL": stack.enter_context(FaultyProxy(socket).run())}
        server = f"postgres@127.0.0.1:{proxies['PostgreSQL'].port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAIL_")}
        environ = {
            **kept,
            "MAIL_HOME": str(home),
            "MAIL_LISTS": str(lists),
            "MAIL_PG_DSN": f"postgresql://{server}/{MAIL}",
            "DAGSTER_POSTGRES_URL": f"postgresql+psycopg2://{server}/{DAGSTER}",
            "DAGSTER_HOME": str(home / "dagster"),
        }
        if arguments.s3:
            (folder / "ceph").mkdir()
            gateway = stack.enter_context(serve_ceph(folder / "ceph"))
            proxies["S3"] = stack.enter_context(FaultyProxy(int(gateway.split(":")[2])).run())
            environ |= {
                "MAIL_STORE": f"s3://{BUCKET}/store",
                "MAIL_VECTORS": f"lance:s3://{BUCKET}/vectors",
                "MAIL_WORDS": f"lance:s3://{BUCKET}/words",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxies['S3'].port}",
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": KEY,
                "AWS_DEFAULT_REGION": "us-east-1",
            }
            os.environ |= {name: environ[name] for name in environ if name.startswith("AWS_")}
            boto3.client("s3").create_bucket(Bucket=BUCKET)
        if arguments.fast:
            environ["MAIL_PRECISION"] = "static"
        command = [*CLI, "backfill"]
        command += ["--jobs", str(arguments.jobs), *(["--fast"] if arguments.fast else [])]
        acts = Acts(home, cluster, proxies, own_disk=os.geteuid() == 0)
        yield World(home, command, environ, acts)


def describe_lists(archives: Path, repository: Path | None) -> str:
    """Return the text of lists.toml; with a repository it names the archives' months."""
    mail = f"[{LIST}]\nsource = {json.dumps(str(archives.resolve()))}\n"
    if repository is None:
        return mail
    months = sorted(group_by_month([path.name for path in archives.iterdir()]))
    return (
        f'first_month = "{months[0]}"\nlast_month = "{months[-1]}"\n{mail}'
        f"[repositories.code]\nsource = {json.dumps(str(repository.resolve()))}\n"
        f'lists = ["{LIST}"]\n'
    )


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield an empty temporary folder; for root it is a small disk in memory."""
    with tempfile.TemporaryDirectory(prefix="mail-assets-") as name:
        folder = Path(name, "disk")
        folder.mkdir()
        Path(name).chmod(0o755)  # the server's account must be able to enter
        if os.geteuid() != 0:
            yield folder
            return
        options = f"size={DISK},mode=755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def empty_bucket(environ: dict[str, str]) -> None:
    """Delete all objects of the bucket, if there is one."""
    if not environ.get("MAIL_STORE"):
        return
    bucket = boto3.resource("s3").Bucket(BUCKET)
    bucket.objects.delete()


if __name__ == "__main__":
    main()
