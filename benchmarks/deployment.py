"""Start the services of compose.yaml without a container daemon, and run a command with them.

    python -m benchmarks.deployment IMAGE VOLUMES [--workers 2] [--kill SECONDS] [--command X]
                                    [--env NAME=VALUE ...]

IMAGE is the folder with the files of our image; `buildah mount` prints it. VOLUMES is a folder for
the volumes, which are kept for the next run. Each replica of a service is a process in IMAGE
(chroot) with the user id of the image, the environment of compose.yaml and of the image, and no
other variable. The services have their own network namespace, in which their names are 127.0.0.1.
The webserver and the daemon start when PostgreSQL, Redis, the code server and the workers are
healthy, by the health checks of compose.yaml. PostgreSQL and Redis are the programs of this
machine, with the options of compose.yaml. --env is a line of .env.

The command (default: mail-assets backfill --launch) runs as in the service `code`. The report has
its seconds, the seconds from the first start to the last end of the runs of months, the most
connections that PostgreSQL had at once, and a digest of each table, file and index. Compare these
between runs with other numbers of workers.

--kill SECONDS kills a worker with all its processes that long after the command has started, and
starts another, as a container daemon does. Needs redis-server, and root for the namespaces.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import yaml

from benchmarks.end_state import digest_home
from mail_assets.files import find_checkout
from mail_assets.postgres.programs import find_bindir, reachable_bindir, server_account
from mail_assets.settings.settings import load_settings

#: ${NAME}, ${NAME:-default}, ${NAME:?error}; and $$ for a dollar sign.
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")


@dataclass(frozen=True)
class Service:
    """A service of compose.yaml; volumes are "SOURCE:TARGET[:ro]".

    `needs` are the services that must be healthy before it starts.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    volumes: tuple[str, ...]
    healthcheck: tuple[str, ...]
    needs: tuple[str, ...]
    replicas: int

    @property
    def is_ours(self) -> bool:
        """True if it runs the image of this repository."""
        return "MAIL_LOCAL_STATE" in self.environment


def read_services(path: Path, environ: Mapping[str, str]) -> dict[str, Service]:
    """Return the services of a compose.yaml; `environ` replaces its .env file.

    Raises:
        ValueError: a required variable is not set.
    """
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    filled = fill_in(document["services"], environ)
    return {name: _service(name, found) for name, found in filled.items()}


def fill_in(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a YAML value with the variables in its strings replaced."""
    if isinstance(value, dict):
        return {key: fill_in(one, environ) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, environ) for one in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _replace(found, environ), value)
    return value


def _replace(found: re.Match[str], environ: Mapping[str, str]) -> str:
    dollar, name, kind, text = found.groups()
    if dollar:
        return "$"
    if kind == "?" and not environ.get(name):
        raise ValueError(f"{name}: {text}")
    return environ.get(name) or (text if kind == "-" else "")


def _service(name: str, found: Mapping[str, Any]) -> Service:
    return Service(
        name,
        tuple(found["command"]) if "command" in found else (),
        {key: str(value) for key, value in found.get("environment", {}).items()},
        tuple(found.get("volumes", ())),
        tuple(found["healthcheck"]["test"]),
        tuple(found.get("depends_on", ())),
        int(found.get("deploy", {}).get("replicas", 1)),
    )


USER = "10001"
PASSWORD = "of-this-benchmark"
INSIDE = "MAIL_BENCHMARK_INSIDE"
#: Seconds before SIGKILL: Compose's default. No work is left at the end.
STOP_SECONDS = 10
#: Environment that the Dockerfile sets.
IMAGE_ENVIRONMENT = {
    "PATH": "/opt/mail-assets/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/data",
    "MAIL_HOME": "/data",
    "MAIL_MODEL_DIR": "/models",
    "MAIL_LOCAL_STATE": "refuse",
    "PYTHONUNBUFFERED": "1",
}


class Place(NamedTuple):
    """Folders of the image, the volumes and the repository."""

    image: Path
    volumes: Path
    repository: Path


class Part(NamedTuple):
    """A process of a service, which leads a session, and its host name."""

    service: Service
    host: str
    process: "subprocess.Popen[bytes]"


def main() -> None:
    """Start the services, run the command, print the report, stop the services."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("volumes", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", type=float, help="kill a worker after these seconds")
    parser.add_argument("--lists", type=Path, default=".", help="the folder with lists.toml")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE, as in .env")
    parser.add_argument("--command", default="mail-assets backfill --launch")
    arguments = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [sys.executable, "-m", "benchmarks.deployment", *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "--net", "--mount", *command])
    repository = find_checkout()
    assert repository
    place = Place(arguments.image.resolve(), arguments.volumes.resolve(), repository)
    environ = {
        **os.environ,
        "MAIL_WORKERS": str(arguments.workers),
        "MAIL_LISTS_FILE": str(arguments.lists.resolve() / "lists.toml"),
        "MAIL_ARCHIVES_FOLDER": str(arguments.lists.resolve() / "samples"),
    }
    services = read_services(repository / "compose.yaml", environ)
    env_file = dict(line.split("=", 1) for line in arguments.env)
    for name, service in services.items():
        if service.is_ours:
            secrets = {"PGPASSWORD": PASSWORD}  # in a container: a file of MAIL_SECRETS
            environment = {**env_file, **service.environment, **secrets}
            services[name] = replace(service, environment=environment)
    enter(place, services)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with contextlib.ExitStack() as stack:
        start_postgres(stack, place, services["postgres"])
        start_redis(stack, place, services["redis"])
        started_parts: list[Part] = []
        # the webserver and the daemon need the code server
        for names in (("code", "worker"), ("webserver", "daemon")):
            parts = [
                stack.enter_context(part(place, services[name], number))
                for name in names
                for number in range(services[name].replicas)
            ]
            for one in parts:
                wait_for(place, one)
            started_parts += parts
        if arguments.kill:
            worker = next(one for one in started_parts if one.service.name == "worker")
            threading.Timer(arguments.kill, kill_worker, [stack, place, worker]).start()
        report(place, services["code"], arguments.command)


def enter(place: Place, services: Mapping[str, Service]) -> None:
    """Set up the network namespace, the names of the services, and the volumes."""
    hosts = place.volumes / "hosts"
    hosts.parent.mkdir(parents=True, exist_ok=True)
    hosts.write_text(f"127.0.0.1 localhost {' '.join(services)}\n")
    run("ip", "link", "set", "lo", "up")
    for target in (Path("/etc/hosts"), place.image / "etc/hosts"):
        target.touch()
        run("mount", "--bind", hosts, target)
    for name in ("proc", "dev"):
        run("mount", "--rbind", f"/{name}", place.image / name)
    for volume in services["code"].volumes:
        source, mounted, *_ = volume.split(":")
        inside = place.image / mounted.lstrip("/")
        folder = Path(source)
        if folder.is_file():
            inside.parent.mkdir(parents=True, exist_ok=True)
            inside.touch()
        else:
            inside.mkdir(parents=True, exist_ok=True)
        if not folder.is_absolute():
            folder = place.volumes / source
            if not folder.exists():
                # a new volume gets the files and the owner of the folder at its mount point
                run("cp", "--archive", inside, folder)
        run("mount", "--bind", folder, inside)


def start_postgres(stack: contextlib.ExitStack, place: Place, service: Service) -> None:
    """Start PostgreSQL as its image does: create user, database and the mounted SQL files."""
    account = server_account()
    binaries = reachable_bindir(find_bindir(), account)
    folder = place.volumes / "postgres"
    fresh = not folder.exists()
    if fresh:
        folder.mkdir()
        os.chown(folder, account.uid, account.gid)
        secret = place.volumes / "password"
        secret.write_text(PASSWORD)
        owner = ("--username", service.environment["POSTGRES_USER"], "--pwfile", secret)
        where = ("--pgdata", folder / "data", "--auth=scram-sha-256")
        run(binaries / "initdb", *where, *owner, user=account.uid)
    options = (*service.command[1:], "-k", str(folder), "-clisten_addresses=127.0.0.1")
    server = (str(binaries / "postgres"), "-D", str(folder / "data"), *options)
    stack.enter_context(started(server, place.volumes / "postgres.log", user=account.uid))
    with connected() as connection:
        if fresh:
            connection.execute(f"create database {service.environment['POSTGRES_DB']}")
            for volume in service.volumes:
                if volume.startswith("./"):
                    connection.execute((place.repository / volume.split(":")[0]).read_bytes())


def start_redis(stack: contextlib.ExitStack, place: Place, service: Service) -> None:
    """Start Redis with the options of the service."""
    folder = place.volumes / "redis"
    folder.mkdir(exist_ok=True)
    stack.enter_context(
        started((*service.command, "--dir", folder), place.volumes / "redis.log", user=0)
    )


@contextlib.contextmanager
def part(place: Place, service: Service, number: int) -> Iterator[Part]:
    """Run a replica of a service in the image, with its own host name, while the block runs."""
    host = f"{service.name}-{number}"
    inside = enclosed(place, {**service.environment, "HOSTNAME": host}, service.command)
    command = ("unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh", *inside)
    with started(command, place.volumes / f"{host}.log", user=0) as process:
        yield Part(service, host, process)


def kill_worker(stack: contextlib.ExitStack, place: Place, killed: Part) -> None:
    """Kill a worker with all its processes, then start it again."""
    print(f"killed a worker, {time.strftime('%H:%M:%S')}", flush=True)
    os.killpg(killed.process.pid, signal.SIGKILL)
    stack.enter_context(part(place, killed.service, killed.service.replicas))


def enclosed(
    place: Place, environ: Mapping[str, str], command: tuple[str, ...]
) -> tuple[str | Path, ...]:
    """Return the command line that runs a command in the image, as the image's user."""
    pairs = [f"{key}={value}" for key, value in {**IMAGE_ENVIRONMENT, **environ}.items()]
    chroot = ("chroot", f"--userspec={USER}:{USER}", place.image)
    return (*chroot, "env", "--ignore-environment", "--chdir=/data", *pairs, *command)


def wait_for(place: Place, waited: Part) -> None:
    """Wait until the health check of a replica's service succeeds."""
    kind, *check = waited.service.healthcheck
    command = ("sh", "-c", check[0]) if kind == "CMD-SHELL" else tuple(check)
    environ = {**waited.service.environment, "HOSTNAME": waited.host}
    while subprocess.run(enclosed(place, environ, command), capture_output=True).returncode:
        if waited.process.poll() is not None:
            sys.exit(f"{waited.host} ended; see {place.volumes / waited.host}.log")
        time.sleep(2)
    print(f"{waited.host} is healthy", flush=True)


def report(place: Place, service: Service, command: str) -> None:
    """Run a command as a service; print its time, connections, and digests of the result."""
    peak = Peak()
    threading.Thread(target=peak.watch, daemon=True).start()
    began = time.monotonic()
    done = subprocess.run(enclosed(place, service.environment, ("sh", "-c", command)), check=False)
    seconds = time.monotonic() - began
    print(f"exit code {done.returncode}, {seconds:.0f} s, {peak.most} connections at most")
    with connected("dagster") as connection:
        for row in connection.execute(
            "select status, count(*), min(start_time), max(end_time), sum(end_time - start_time)"
            "  from runs where run_id in (select run_id from run_tags where key = %s) group by 1",
            ["dagster/asset_partition_range_start"],
        ):
            status, runs, start, end, summed = row
            print(f"runs of months: {runs} {status}, {end - start:.1f} s from {start:.1f} on,")
            print(f"  {summed:.1f} s one by one")
    data = place.volumes / "data"
    environ = {
        "MAIL_HOME": str(data),
        "MAIL_PG_DSN": f"postgresql://mail:{PASSWORD}@127.0.0.1/mail",
        "MAIL_STORE": str(data / "store"),
        "MAIL_VECTORS": f"lance:{data / 'vectors'}",
        "MAIL_WORDS": f"lance:{data / 'words'}",
    }
    found = digest_home(load_settings(environ))
    for name in sorted(found):
        print(found[name][:16], name)


class Peak:
    """Largest number of connections that the server had at once."""

    most = 0

    def watch(self) -> None:
        """Count the connections ten times a second, until the server stops."""
        query = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        with contextlib.suppress(psycopg.OperationalError), connected() as connection:
            while row := connection.execute(query).fetchone():
                self.most = max(self.most, row[0] - 1)
                time.sleep(0.1)


@contextlib.contextmanager
def connected(database: str = "postgres") -> Iterator[psycopg.Connection]:
    """Wait for the server; yield a connection to it."""
    dsn = f"postgresql://mail:{PASSWORD}@127.0.0.1/{database}"
    while True:
        with contextlib.suppress(psycopg.OperationalError):
            connection = psycopg.connect(dsn, autocommit=True)
            break
        time.sleep(0.5)
    with connection:
        yield connection


@contextlib.contextmanager
def started(
    command: tuple[str | Path, ...], log: Path, user: int
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process, which leads a session, while the block runs.

    It is stopped by SIGTERM, and by SIGKILL after STOP_SECONDS. PostgreSQL gets SIGINT, as in its
    image: on SIGTERM it would wait for its clients.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, start_new_session=True, user=user or None
        )
    try:
        yield process
    finally:
        is_postgres = Path(str(command[0])).name == "postgres"
        process.send_signal(signal.SIGINT if is_postgres else signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:  # sometimes a code server with open calls
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(*command: str | Path, user: int = 0) -> None:
    """Run a command; raise CalledProcessError if it fails."""
    subprocess.run(command, check=True, user=user or None, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
