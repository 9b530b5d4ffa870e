"""A process that computes what it is sent, one thing after another.

Not `multiprocessing`: its spawned processes import the program's main module first (Dagster's
takes 0.7 s), its forked ones inherit the threads of gRPC, and both outlive a parent that was
killed. These are started as a module of their own, and end when the pipe they read from does.
"""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any

#: Started by `python -m`.
PROGRAM = "mail_assets.processes.worker_process"


class WorkerError(RuntimeError):
    """A process that computed has ended, or an error that its function did not catch."""


class Worker:
    """One process, started with its first item and again where it has ended.

    `remedy` is told where it ended by itself; `core` is the CPU that it keeps to, None for any.
    Used by one thread at a time.
    """

    def __init__(self, remedy: str, core: int | None = None) -> None:
        self._remedy = remedy
        self._arguments = [] if core is None else [str(core)]
        self._process: subprocess.Popen[bytes] | None = None
        self._call = b""

    def compute(self, call: bytes, item: object) -> Any:
        """Return what a function returns for an item; `call` is pickled, the function and what it
        is given as its first argument, which the process keeps for the items that follow.

        Raises:
            WorkerError: the process has ended, or the function raised an error.
        """
        process = self._process or self._start()
        try:
            _send(process, (None if call == self._call else call, item))
            self._call = call
            error, result = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError, pickle.UnpicklingError) as gone:
            code = self.close()
            raise WorkerError(
                f"a process that computes has ended with exit code {code}; the kernel kills one "
                f"that takes too much memory. {self._remedy}"
            ) from gone
        if error:
            raise WorkerError(error)
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._call = b""
        return self._process

    def close(self) -> int | None:
        """End the process: it ends at the end of its input."""
        process, self._process = self._process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        return process.wait()


def _send(process: subprocess.Popen[bytes], message: object) -> None:
    pickle.dump(message, process.stdin, protocol=5)  # type: ignore[arg-type]
    process.stdin.flush()  # type: ignore[union-attr]
