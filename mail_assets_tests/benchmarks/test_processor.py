"""Processor time of this process and its programs counts each second once."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.processor import seconds_so_far

#: Processor seconds that a program uses before it reports and waits.
USED = 0.4
PROGRAM = f"""
import time
while time.process_time() < {USED}: pass
print(flush=True)
input()
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no proc(5) here")


def test_program_counts_once_when_it_has_ended() -> None:
    before = seconds_so_far()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        running = seconds_so_far() - before
        program.communicate(b"\n")
    ended = seconds_so_far() - before
    assert USED * 0.9 <= running <= ended < 2 * USED


def test_time_of_this_process_counts_once() -> None:
    before, began = seconds_so_far(), time.process_time()
    while time.process_time() < began + USED:
        pass
    assert USED * 0.9 <= seconds_so_far() - before < 2 * USED
