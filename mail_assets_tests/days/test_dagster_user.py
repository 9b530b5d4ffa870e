"""The day of a Dagster user: Dagster's commands in README and docs work."""

import re

import pytest

from mail_assets.definitions import defs as load
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.days.conftest import Shell, commands_of
from mail_assets_tests.waits import wait_until

pytestmark = pytest.mark.slow

SECTION = "With Dagster's commands"
LOCATION = "mail_assets.definitions"

#: Assets that no month needs.
BY_NAME = ("search_quality", "search_audit")


def is_server(command: str) -> bool:
    return command.split()[1] == "dev"


def test_commands_of_readme_make_months_and_nothing_else(shell: Shell) -> None:
    shell.run("mail-assets up")
    commands = [one for one in commands_of(SECTION, "dagster") if not is_server(one)]
    assert len(commands) == 4
    printed = {command: shell.run(command) for command in commands}
    month, year, queries, validate = printed.values()
    for asset in BY_NAME:
        assert f"mail__{asset} - ASSET_MATERIALIZATION" not in month
        assert f"{asset} has no months" in month
    assert "vectors harbor-dev 2024-03: chunks" in month
    assert "vectors harbor-dev 2024-04: chunks" in year
    assert re.search(r"'why do jobs run twice': \d+ hits.*\n 1\. ", queries)
    assert "All code locations passed validation" in validate
    assert "nothing changed" in shell.call("mail-assets backfill --list harbor-dev")


def test_successors_in_readme_do_the_same(shell: Shell) -> None:
    shell.call("mail-assets up")
    commands = [one for one in commands_of(SECTION, "dg") if not is_server(one)]
    assert [one.split()[1] for one in commands] == ["launch", "launch", "launch", "check", "list"]
    *_, queries, _, listed = (shell.run(command) for command in commands)
    assert "\n 1. " in queries
    assert "mail/vectors" in listed
    assert "nothing changed" in shell.call("mail-assets backfill --list harbor-dev")


@pytest.mark.parametrize("program", ["dagster", "dg"])
def test_ui_names_the_code_location_as_commands_do(shell: Shell, program: str) -> None:
    shell.call("mail-assets up")
    [command] = [one for one in commands_of(SECTION, program) if is_server(one)]
    with shell.serve(command) as ui:
        assert ui.locations() == [LOCATION]
        if program == "dagster":
            queue_runs_beside_the_daemon(shell, ui.runs)


def queue_runs_beside_the_daemon(shell: Shell, runs: object) -> None:
    """Run the command of README that queues runs, and wait until the daemon has run them."""
    assert callable(runs)
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    [command] = re.findall(r"`(dagster job backfill [^`]*)`", text)
    assert command.split()[3:5] == ["-m", LOCATION]
    shell.run(command)
    ended = {"SUCCESS", "FAILURE", "CANCELED"}
    wait_until(lambda: bool(runs()) and {*runs().values()} <= ended)
    assert {*runs().values()} == {"SUCCESS"}


def test_definitions_of_the_module_are_those_of_the_project() -> None:
    names = {spec.key.path[-1] for spec in load().resolve_all_asset_specs()}
    assert {"messages", *BY_NAME} <= names
