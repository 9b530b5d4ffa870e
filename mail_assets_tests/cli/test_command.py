"""Parts that commands share: completion, names of lists, tables, text of strangers, terminals."""

import io

import pytest

from mail_assets.cli.command import (
    plural,
    print_table,
    printable,
    printable_line,
    shows_progress,
)
from mail_assets_tests.cli.conftest import invoke, spawn


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "_MAIL_ASSETS_COMPLETE=bash_complete"),
        ("zsh", "#compdef mail-assets"),
        ("fish", "complete --no-files --command mail-assets"),
    ],
)
def test_each_shell_has_a_script(shell: str, line: str) -> None:
    result = invoke("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert line in result.stdout


@pytest.mark.parametrize(
    ("typed", "choices", "wrong"),
    [
        ("mail-assets comp", ["completion"], {}),
        ("mail-assets search --list q", ["quiet"], {}),
        ("mail-assets list --list ", ["quiet"], {}),
        ("mail-assets evaluate --list x", [], {}),
        ("mail-assets search --list q", [], {"MAIL_LISTS": "/does/not/exist.toml"}),
    ],
)
def test_commands_and_list_names_are_completed(
    bare: dict[str, str], typed: str, choices: list[str], wrong: dict[str, str]
) -> None:
    environ = {
        "_MAIL_ASSETS_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    done = spawn([], bare | environ | wrong)
    assert done.stderr == b""
    assert [line.partition(",")[2] for line in done.stdout.decode().split()] == choices


def test_unknown_list_suggests_the_nearest(bare: dict[str, str]) -> None:
    result = invoke("backfill", "--list", "quite", env=bare)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "mail-assets: --list='quite': did you mean quiet? there are: quiet\n"


def test_table_is_aligned_with_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("list", "messages", "note"), [("dev", 1_234_567, ""), ("users", 8, "a\x1b[2Jb")])
    assert capsys.readouterr().out == (
        "list      messages  note\n"
        "dev      1,234,567\n"
        "users            8  a\N{REPLACEMENT CHARACTER}[2Jb\n"
    )


def test_table_without_rows_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("list", "messages"), [])
    assert capsys.readouterr().out == ""


def test_table_without_a_header_is_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table((), [("home", "/x"), ("encoder", "1e5")])
    assert capsys.readouterr().out == "home     /x\nencoder  1e5\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\nb", "a b"),
        ("a\x1b[31mb", "a\N{REPLACEMENT CHARACTER}[31mb"),
        ("a\x9b31mb", "a\N{REPLACEMENT CHARACTER}31mb"),
        ("  a\tb  ", "a b"),
    ],
)
def test_text_on_one_line_has_no_control_characters(text: str, line: str) -> None:
    assert printable_line(text) == line


def test_text_keeps_its_lines_and_tabs() -> None:
    assert printable("a\r\n\tb\x07") == "a\n\tb\N{REPLACEMENT CHARACTER}"


def test_count_has_its_noun() -> None:
    assert [plural(0, "hit"), plural(1, "hit"), plural(2, "person", "people")] == [
        "0 hits",
        "1 hit",
        "2 people",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_redrawn_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", Terminal())
    assert shows_progress()
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert not shows_progress()
