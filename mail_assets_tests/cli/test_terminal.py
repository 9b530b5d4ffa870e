"""What a terminal may be given."""

import io

import pytest

from mail_assets.cli.command import shows_colour, shows_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "colour", "progress"),
    [
        ({}, True, True),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"CI": "true"}, True, False),
    ],
)
def test_the_environment_decides(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], colour: bool, progress: bool
) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "CI": "", **environ}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", Terminal())
    assert (shows_colour(), shows_progress()) == (colour, progress)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert not shows_progress()
