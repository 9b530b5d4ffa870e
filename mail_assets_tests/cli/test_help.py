"""The help of every command."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mail_assets.cli import main
from mail_assets_tests.cli.conftest import invoke, spawn


def commands(group: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, *path, name)


COMMANDS = dict(commands(main))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_a_short_sentence_and_an_example(path: tuple[str, ...]) -> None:
    result = invoke(*path, "--help")
    assert result.exit_code == 0
    assert "\n  Example" in result.stdout
    assert not COMMANDS[path].get_short_help_str(limit=62).endswith("...")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_examples_have_options_that_exist(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("queries.jsonl", "qrels.tsv", "ids.txt", "shas.txt"):
        Path(name).touch()
    Path("crane").mkdir()
    _, title, *examples = (COMMANDS[path].epilog or "").splitlines()
    assert title == ("Example:" if len(examples) == 1 else "Examples:")
    for example in examples:
        line = example.partition("$(")[2].partition(")")[0] or example.partition(" > ")[0]
        words = [word for word in shlex.split(line) if not word.startswith("MAIL_")]
        assert words.pop(0) == "mail-assets"
        named = max((one for one in COMMANDS if (*words[: len(one)],) == one), key=len)
        assert named[: len(path)] == path
        COMMANDS[named].make_context("", words[len(named) :])  # refuses a wrong option or argument


def test_help_lists_the_commands(bare: dict[str, str]) -> None:
    done = spawn(["--help"], bare)
    assert done.returncode == 0
    for name in ("up", "down", "status", "backfill", "search", "stats", "list", "show"):
        assert f"\n  {name} ".encode() in done.stdout
    assert spawn(["nonsense"], bare).returncode == 2
