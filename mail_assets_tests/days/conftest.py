"""A shell in the checkout with a separate home, for tests that run the commands of README."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.days.programs import PROGRAMS, run_program
from mail_assets_tests.forks import start_process
from mail_assets_tests.ports import find_free_port
from mail_assets_tests.waits import wait_until

BIN = Path(sys.executable).parent


@dataclass
class Shell:
    """Commands in a folder, with the environment of a home."""

    environ: Mapping[str, str]
    folder: Path = REPOSITORY
    log: list[str] = field(default_factory=list)

    def run(self, command: str, code: int = 0, **environ: str) -> str:
        """Run a command line of bash, check its exit code, and return both of its outputs.

        Programs of Dagster are run by a process that has imported them, and not by bash.
        """
        arguments = shlex.split(command)
        if arguments[0] in PROGRAMS:
            return self._fork(arguments, code)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"$ {command}\n{done.stdout}"
        return done.stdout

    def _fork(self, arguments: list[str], code: int) -> str:
        output = Path(self.environ["MAIL_HOME"]) / "output.txt"
        process = start_process(run_program, arguments, self.folder, output, environ=self.environ)
        process.join()
        printed = output.read_text(encoding="utf-8")
        assert process.exitcode == code, f"$ {arguments}\n{printed}"
        return printed

    def call(self, command: str, code: int = 0, **environ: str) -> str:
        """Run a command of mail-assets in this process, which has all imports."""
        program, *arguments = command.split()
        assert program == "mail-assets"
        done = CliRunner().invoke(main, arguments, env={**self.environ, **environ})
        assert done.exit_code == code, f"$ {command}\n{done.output}"
        return done.output

    @contextmanager
    def serve(self, command: str) -> Iterator["Ui"]:
        """Run a command that serves the Dagster UI and the daemon, and end it."""
        ui = Ui(find_free_port())
        log = Path(self.environ["MAIL_HOME"]) / "ui.log"
        with log.open("w") as out:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command} --port {ui.port}"],
                cwd=self.folder,
                env={**self.environ},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_until(lambda: server.poll() is not None or ui.answers())
            assert server.poll() is None, log.read_text()
            yield ui
        finally:
            os.killpg(server.pid, signal.SIGINT)
            server.wait()


@dataclass
class Ui:
    """The Dagster UI at a port of this machine."""

    port: int

    def answers(self) -> bool:
        try:
            return bool(self.locations())
        except OSError:
            return False

    def locations(self) -> list[str]:
        entries = self.ask(
            "{workspaceOrError {... on Workspace {locationEntries {name loadStatus}}}}"
        )["workspaceOrError"]["locationEntries"]
        return [one["name"] for one in entries if one["loadStatus"] == "LOADED"]

    def ask(self, query: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)["data"]

    def runs(self) -> dict[str, str]:
        found = self.ask("{runsOrError {... on Runs {results {runId status}}}}")
        return {run["runId"]: run["status"] for run in found["runsOrError"]["results"]}


@pytest.fixture
def shell(tmp_path: Path, home_dsn: str, model_cache: Path) -> Shell:
    """A shell in the checkout, with the sample lists and an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    return Shell(
        {
            "PATH": f"{BIN}:{os.defpath}",
            "HOME": str(tmp_path),
            "LANG": "C.UTF-8",
            "VIRTUAL_ENV": str(BIN.parent),
            "MAIL_HOME": str(home),
            "MAIL_LISTS": str(REPOSITORY / "lists.toml"),
            "MAIL_PG_DSN": home_dsn,
            "DAGSTER_POSTGRES_URL": dagster_url(home_dsn),
            "DAGSTER_HOME": str(home / "dagster"),
            "MAIL_MODEL_DIR": str(model_cache),
            "MAIL_JOBS": "1",
            "MAIL_PRECISION": "static",  # which encoder is none of what a day shows
        }
    )


def commands_of(section: str, verb: str) -> list[str]:
    """Return the commands of a section of README that begin with a word, in order."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    body = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^ {{4}}({verb} .*)$", body, re.MULTILINE)
