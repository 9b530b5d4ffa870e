"""Functions for the processes of a pool in tests; the module imports quickly."""

import os
import signal


def multiply(factor: int, number: int) -> tuple[int, int]:
    print("what a library prints is no result")
    return factor * number, os.getpid()


def kill_yourself(_: None, number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fail(_: None, number: int) -> int:
    if number == 5:
        raise KeyError("the fifth")
    return number


def kill_batch(_: object, batch: list[object]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
