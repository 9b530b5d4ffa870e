"""Commands over the corpus that mail_assets_tests/search indexes."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mail_assets.cli import main
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.sample_corpus import Corpus, small_corpus
from mail_assets_tests.search.conftest import connection

__all__ = ["connection"]  # fixture

Run = Callable[..., Result]


def invoke(
    *arguments: str, env: Mapping[str, str | None] | None = None, stdin: str | None = None
) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(main, arguments, env=env, input=stdin)


def assert_fails(result: Result, code: int, said: str) -> None:
    """Assert that a command printed no answer, and an error with these words."""
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def run(corpus: Corpus) -> Run:
    """`run("search", "words", MAIL_HOME="...")`: a command in this process."""

    def run(*arguments: str, stdin: str | None = None, **environ: str) -> Result:
        return invoke(*arguments, env={**corpus.environ, **environ}, stdin=stdin)

    return run


class Home:
    """A separate home, whose commands run in this process."""

    def __init__(self, home: Path, dsn: str, models: Path) -> None:
        corpus = small_corpus(home, dsn, models)
        self.environ = {**corpus.environ, "DAGSTER_HOME": str(home / "dagster")}
        self.move(dsn)

    def move(self, dsn: str) -> None:
        """Continue with another database."""
        url = dagster_url(dsn)
        self.environ |= {"MAIL_PG_DSN": dsn, "DAGSTER_POSTGRES_URL": url}

    def run(self, *arguments: str, **environ: str) -> Result:
        return invoke(*arguments, env=self.environ | environ)

    def lines(self, *arguments: str, **environ: str) -> list[str]:
        result = self.run(*arguments, **environ)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment whose home does not exist yet."""
    (tmp_path / "lists.toml").write_text(f'[quiet]\nsource = "{tmp_path}"\n')
    return {"MAIL_HOME": str(tmp_path / "home"), "MAIL_LISTS": str(tmp_path / "lists.toml")}


def inherited_environment() -> dict[str, str]:
    """Return the variables of this process without settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MAIL_", "DAGSTER"))}


def spawn(
    arguments: list[str], environ: dict[str, str], shell: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a separate process; `shell` is appended to the command line."""
    command = [sys.executable, "-m", "mail_assets.cli", *arguments]
    if shell:
        command = ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "bash", *command]
    environ = {"MAIL_STANDBY_MINUTES": "0"} | environ
    return subprocess.run(
        command, env=inherited_environment() | environ, capture_output=True, check=False
    )
