"""The program of a worker process: read calls from stdin, write results to stdout.

workers.py starts it with `python -m`. It ends when its input ends: the worker was closed, or the
parent process was killed. The optional argument is the CPU on which it runs (machine.py). It is a
file of its own, because a module that is both run and imported would exist twice.
"""

import os
import pickle
import signal
import sys
import traceback
from typing import Any

from mail_assets.processes.machine import pin_process


def main() -> None:
    """Answer calls until the input ends."""
    if len(sys.argv) > 1:
        pin_process(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    calls = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries goes to stderr, not among the results
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
