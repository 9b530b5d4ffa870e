"""Programs of servers: find them, and run them during a block."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mail_assets.postgres.programs import SwitchArguments
from mail_assets_tests.waits import LONG

#: What Debian calls the packages of the programs, and where it keeps those that are in no PATH.
PACKAGES = {
    "ceph": "ceph-common", "ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd",
    "monmaptool": "ceph-base", "radosgw": "radosgw", "radosgw-admin": "ceph-common",
    "pgbouncer": "pgbouncer", "initdb": "postgresql-15", "postgres": "postgresql-15",
}  # fmt: skip
FOLDERS = ("/usr/lib/postgresql/15/bin", "/usr/sbin", "/usr/local/sbin")

#: Seconds between two looks at whether a server answers.
PAUSE = 0.05


class ServerError(RuntimeError):
    """A server ended, or did not answer in time; the message ends with its log."""


def find_programs(*names: str) -> dict[str, str]:
    """Return the path of each program; skip the test where one is not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    found = {name: shutil.which(name, path=path) for name in names}
    if missing := [name for name, place in found.items() if place is None]:
        packages = " ".join(sorted({PACKAGES[name] for name in missing}))
        pytest.skip(f"needs {', '.join(missing)}: apt-get install {packages}")
    return {name: place for name, place in found.items() if place}


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def run_server(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    account: SwitchArguments | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in the foreground until the block ends; wait until it is ready.

    It runs under another account where one is given, and is killed with the process that started
    it, however that ends (`setpriv`, Linux).

    Raises:
        ServerError: it is not ready.
    """
    guard = ("setpriv", "--pdeathsig", "KILL", "--")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*guard, *command], stdout=output, stderr=output, cwd="/", **(account or {})
        )
    try:
        wait_until(ready, process, log)
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server is ready.

    Raises:
        ServerError: it has ended, or it is not ready in time.
    """
    deadline = time.monotonic() + LONG
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            ended = "does not answer" if process.poll() is None else "ended"
            tail = log.read_text(errors="replace")[-2000:]
            raise ServerError(f"{process.args!r} {ended}; its log ends:\n{tail}")
        time.sleep(PAUSE)
