"""A process is told from others, also from the one that gets its pid later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mail_assets.processes import workers
from mail_assets.processes.workers import has_ended, name_process

_SAY_NAME = """
import sys
from mail_assets.processes.identity import name_process
print(name_process(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> subprocess.Popen[str]:
    """A process that says its name, and ends with its input."""
    return subprocess.Popen(
        [sys.executable, "-c", _SAY_NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_name(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


@pytest.fixture
def ended_process(child: subprocess.Popen[str]) -> str:
    """The name of a process that was killed."""
    with child:
        name = read_name(child)
        child.kill()
    return name


def test_this_process_has_not_ended() -> None:
    assert not has_ended(name_process())


def test_a_process_has_ended_once_it_is_killed_waited_for_or_not(
    child: subprocess.Popen[str],
) -> None:
    with child:
        name = read_name(child)
        assert not has_ended(name)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(name), "it is in the process table still"
    assert has_ended(name)


def test_a_pid_that_was_given_again_is_of_another_process() -> None:
    *machine, pid, started = name_process().split(" ")
    assert has_ended(" ".join([*machine, pid, str(int(started) - 1)]))


def test_of_other_machines_nobody_can_tell(ended_process: str) -> None:
    assert not has_ended(f"elsewhere {ended_process}")


@pytest.mark.parametrize("content", ["0123456789abcdef0123456789abcdef\n", "", None])
def test_a_machine_of_the_same_name_is_another_by_its_id(
    ended_process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    own = tmp_path / "own"
    own.write_text("fedcba9876543210fedcba9876543210\n")
    other = tmp_path / "other"
    if content is not None:
        other.write_text(content)
    _, pid, started = ended_process.rsplit(" ", 2)
    monkeypatch.setattr(workers, "MACHINE_ID", other)
    name = f"{name_process().rsplit(' ', 2)[0]} {pid} {started}"
    assert has_ended(name)
    monkeypatch.setattr(workers, "MACHINE_ID", own)
    assert not has_ended(name)
