"""`mail-assets completion`, and what a shell is given to choose from."""

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets_tests.cli.conftest import spawn


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "_MAIL_ASSETS_COMPLETE=bash_complete"),
        ("zsh", "#compdef mail-assets"),
        ("fish", "complete --no-files --command mail-assets"),
    ],
)
def test_each_shell_has_a_script(shell: str, line: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert (result.exit_code, result.stderr) == (0, "")
    assert line in result.stdout


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("mail-assets comp", ["completion"]),
        ("mail-assets search --list q", ["quiet"]),
        ("mail-assets list --list ", ["quiet"]),
        ("mail-assets evaluate --list x", []),
    ],
)
def test_commands_and_list_names_are_completed(
    bare: dict[str, str], typed: str, choices: list[str]
) -> None:
    words = typed.split(" ")
    environ = {
        "_MAIL_ASSETS_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = spawn([], bare | environ)
    assert done.stderr == b""
    assert [line.partition(",")[2] for line in done.stdout.decode().split()] == choices


def test_wrong_settings_complete_nothing_and_say_nothing(bare: dict[str, str]) -> None:
    environ = bare | {
        "MAIL_LISTS": "/does/not/exist.toml",
        "_MAIL_ASSETS_COMPLETE": "bash_complete",
        "COMP_WORDS": "mail-assets search --list q",
        "COMP_CWORD": "3",
    }
    done = spawn([], environ)
    assert (done.stdout.strip(), done.stderr) == (b"", b"")
