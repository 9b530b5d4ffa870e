"""The program of a worker process: reads calls from its input, writes results to its output.

Started with `python -m` by workers.py. It ends when its input ends: the worker was closed, or the
process that started it was killed. An argument, if there is one, is the CPU that all its threads
keep to. It is a file of its own: a module that is run and imported would exist twice.
"""

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any


def main() -> None:
    """Answer calls until there are no more."""
    if len(sys.argv) > 1 and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # the CPU may have been taken from the container
            os.sched_setaffinity(0, {int(sys.argv[1])})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    calls = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no result
    function: Any = None
    shared: Any = None
    answer: tuple[str | None, Any]
    while True:
        try:
            call, item = pickle.load(calls)
        except EOFError:
            return
        if call is not None:
            function, shared = pickle.loads(call)
        try:
            answer = (None, function(shared, item))
        except Exception:
            answer = (traceback.format_exc(), None)
        try:
            pickle.dump(answer, results, protocol=5)
            results.flush()
        except BrokenPipeError:
            sys.exit(1)


if __name__ == "__main__":
    main()
