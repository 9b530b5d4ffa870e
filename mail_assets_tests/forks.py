"""Processes of tests, forked from one that has imported what takes seconds to import: LanceDB."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess

#: Whose pipes, queues and barriers the processes share.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mail_assets_tests.world"])


def start_process(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a process that does some work, in the environment that there is now."""
    process = FORKS.Process(target=_work, args=({**os.environ}, work, arguments))
    process.start()
    return process


def _work(environ: dict[str, str], work: Callable[..., object], arguments: tuple[object]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    work(*arguments)
