#!/usr/bin/env python3
"""Check that the wheel works where there is no checkout: python .ci/check_wheel.py WHEEL

It is installed with what requirements.lock names into an empty environment; then, in an empty
folder and with an empty home, one list is made, filled and searched, and the pages and
the Dagster UI are started.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE = "harbor-dev"
#: Of the sample: samples/README.md says what answers it.
QUESTION = "how to delete old finished jobs without bloating the table"

#: Seconds until the Dagster UI answers; on a busy machine with two cores it takes a minute.
UI_SECONDS = 900
#: Seconds until a server that is told to end is killed.
STOP_SECONDS = 60


class Installation:
    """An environment with the wheel in it, used from an empty folder."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "venv" / "bin"
        self.folder = root / "empty"
        self.home = root / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def run(self, *command: str, code: int = 0) -> str:
        """Run a command, echo it, check its exit code; return both of its outputs."""
        print("$", *command, flush=True)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(done.stdout, end="", flush=True)
        if done.returncode != code:
            sys.exit(f"exit code {done.returncode}, expected {code}: {' '.join(command)}")
        return done.stdout


def install(installation: Installation, wheel: Path, packages: Path | None) -> None:
    """Make the environment; `packages` is a site-packages used in place of requirements.lock."""
    venv.create(installation.bin.parent, with_pip=True)
    pip = (str(installation.bin / "python"), "-m", "pip", "install", "--quiet", "--no-deps")
    if packages:
        (site,) = installation.bin.parent.glob("lib/python*/site-packages")
        (site / "shared.pth").write_text(f"{packages.resolve()}\n")
    else:
        # the user's own configuration of pip, if any, is in the home that is left out elsewhere
        subprocess.run([*pip, "-r", str(REPOSITORY / "requirements.lock")], check=True)
    subprocess.run([*pip, str(wheel)], check=True)


def check_commands(installation: Installation, version: str) -> None:
    """Go the way of the README: init, up, backfill, search."""
    run = installation.run
    expect(f"version {version}", run("mail-assets", "--version"))
    expect("mail-assets init", run("mail-assets", "status", code=2))
    source = str(REPOSITORY / "samples" / SAMPLE)
    run("mail-assets", "init", "--name", SAMPLE, "--source", source, "--start", "2024-03")
    expect("exists already", run("mail-assets", "init", code=2))
    expect("dagster dev", run("mail-assets", "up"))
    expect("2 months", run("mail-assets", "backfill"))
    expect("vacuum", run("mail-assets", "search", "--limit", "3", QUESTION).lower())
    expect("nothing changed", run("mail-assets", "backfill"))
    if left := [*installation.folder.iterdir()]:
        sys.exit(f"the commands wrote into the current folder: {left}")


def check_pages(installation: Installation) -> None:
    """Serve the archive, and ask for a search."""
    port = free_port()
    command = ("mail-assets", "serve", "--port", str(port))
    print("$", *command, flush=True)
    server = subprocess.Popen(command, cwd=installation.folder, env=installation.environ)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(server, f"{url}/lists.json")
        hits = fetch(f"{url}/search.json?{urllib.parse.urlencode({'q': QUESTION})}")["hits"]
        print("hits:", *(hit["subject"] for hit in hits))
        expect("vacuum", json.dumps(hits).lower())
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def check_ui(installation: Installation) -> None:
    """Start the Dagster UI, and ask it for the assets."""
    home = installation.home / ".local/share/mail-assets/dagster"
    environ = {**installation.environ, "DAGSTER_HOME": str(home)}
    port = free_port()
    command = ("dagster", "dev", "-m", "mail_assets.definitions", "--port", str(port))
    print("$", *command, flush=True)
    python = str(installation.bin / "python")
    server = subprocess.Popen(
        [python, "-m", *command], cwd=installation.folder, env=environ, start_new_session=True
    )
    try:
        url = f"http://127.0.0.1:{port}"
        print(wait_for(server, f"{url}/server_info"))
        query = "{ assetNodes { assetKey { path } } }"
        nodes = fetch(f"{url}/graphql", {"query": query})["data"]["assetNodes"]
        names = sorted("/".join(node["assetKey"]["path"]) for node in nodes)
        print("assets:", *names)
        for asset in ("mail/mbox_archives", "mail/vectors"):
            expect(asset, names)
    finally:
        server.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):  # where it was told to ignore that
            server.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):  # what an interrupt has not ended
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_for(server: "subprocess.Popen[bytes]", url: str) -> Any:
    """Return what the server answers, as soon as it does."""
    until = time.monotonic() + UI_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            sys.exit(f"{server.args!r} ended with exit code {server.returncode}")
        with contextlib.suppress(OSError):
            return fetch(url)
        time.sleep(1)
    sys.exit(f"{url} did not answer within {UI_SECONDS} s")


def fetch(url: str, body: object = None) -> Any:
    """Return the JSON that a URL answers with; a `body` is posted as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=UI_SECONDS) as response:
        return json.load(response)


def free_port() -> int:
    """Return a TCP port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def expect(text: str, found: str | list[str]) -> None:
    """End with an error where a text is not in what was found."""
    if text not in found:
        sys.exit(f"expected {text!r} in {found!r}")


@contextlib.contextmanager
def installed(wheel: Path, packages: Path | None) -> Iterator[Installation]:
    """Yield an installation; at the end its server is stopped and all its files are deleted."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
        # root drops to another account for the server, which must reach its binaries here
        Path(folder).chmod(0o755)
        installation = Installation(Path(folder))
        install(installation, wheel, packages)
        try:
            yield installation
        finally:
            subprocess.run(
                [installation.bin / "mail-assets", "down", "--delete-data", "--yes"],
                env=installation.environ,
                cwd=installation.folder,
                check=False,
            )


def main() -> None:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--packages", type=Path, help="a site-packages to use for the lock's")
    arguments = parser.parse_args()
    with installed(arguments.wheel.resolve(), arguments.packages) as installation:
        check_commands(installation, version=arguments.wheel.name.split("-")[1])
        check_pages(installation)
        check_ui(installation)
    print("the wheel works")


if __name__ == "__main__":
    main()
