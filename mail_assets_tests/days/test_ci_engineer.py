"""The day of a CI engineer: exit codes, short errors, and no partial results."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets_tests.days.conftest import Shell
from mail_assets_tests.world import APRIL, HARBOR, MARCH, mail

pytestmark = pytest.mark.slow

MATERIALIZE = "dagster asset materialize -m mail_assets.definitions --select '*'"


@pytest.fixture
def lists(shell: Shell) -> Path:
    """A list with a good month and a bad one, in place of the samples."""
    folder = Path(shell.environ["MAIL_HOME"]) / "lists" / HARBOR
    folder.mkdir(parents=True)
    (folder / f"{HARBOR}.{MARCH}.mbox").write_bytes(mail("a") + mail("b"))
    (folder / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    lists = folder.parent / "lists.toml"
    lists.write_text(f'first_month = "2024-01"\n[{HARBOR}]\nsource = "{folder}"\n')
    shell.environ = {**shell.environ, "MAIL_LISTS": str(lists)}
    return folder


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("program", [MATERIALIZE, "dg launch --assets '*'"])
def test_failed_month_exits_1_with_three_lines(shell: Shell, program: str) -> None:
    shell.call("mail-assets up")
    printed = shell.run(f"{program} --partition '{HARBOR}|{APRIL}'", code=1)
    assert "Traceback" not in printed
    assert "Stack Trace" not in printed
    *_, months, reason, remedy = printed.partition("\nError: ")[0].rstrip().splitlines()
    assert months == f"{HARBOR} {APRIL}"
    assert "it is an HTML page" in reason
    command = f"mail-assets backfill --list {HARBOR} --from {APRIL} --to {APRIL}"
    assert remedy == f"when that is repaired, run: {command}"


@pytest.mark.usefixtures("lists")
def test_mended_month_is_made_by_the_command_that_was_named(shell: Shell, lists: Path) -> None:
    printed = shell.call("mail-assets backfill", code=1)
    command = printed.splitlines()[-1].partition("run: ")[2]
    (lists / f"{HARBOR}.{APRIL}.mbox").write_bytes(mail("c"))
    assert "1 month materialized, 0 failed" in shell.call(command)
    assert "2 months: nothing changed" in shell.call("mail-assets backfill")


@pytest.fixture
def silent_server() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("variable", ["MAIL_PG_DSN", "DAGSTER_POSTGRES_URL"])
def test_server_without_answer_is_named(shell: Shell, silent_server: int, variable: str) -> None:
    shell.call("mail-assets up")
    scheme = "postgresql" if variable == "MAIL_PG_DSN" else "postgresql+psycopg2"
    dsn = f"{scheme}://mail@127.0.0.1:{silent_server}/mail?connect_timeout=2"
    printed = shell.call("mail-assets backfill", code=1, **{variable: dsn})
    assert "Traceback" not in printed
    assert printed.count("\n") == 1
    assert "timeout expired" in printed or "timed out" in printed


def test_range_of_all_assets_is_made_in_one_run(shell: Shell) -> None:
    shell.call("mail-assets up")
    printed = shell.run(
        f"{MATERIALIZE} --partition-range 'harbor-dev|2024-03...harbor-dev|2024-04'"
    )
    for asset in ("vectors harbor-dev 2024-03", "vectors harbor-dev 2024-04"):
        assert f"{asset}: chunks" in printed
    assert "Traceback" not in printed


def test_make_materialize_is_the_same(shell: Shell) -> None:
    printed = shell.run("make --dry-run materialize LIST=harbor-dev MONTH=2024-03")
    assert f"{MATERIALIZE} --partition 'harbor-dev|2024-03'\n" in printed
    usage = shell.run("make materialize", code=2)
    assert "usage: make materialize LIST=harbor-dev MONTH=2024-03" in usage
