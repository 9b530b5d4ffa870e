"""Processes of tests, forked from a server that has imported LanceDB and Dagster."""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess

#: Context for the pipes, queues and barriers of these processes.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mail_assets_tests.world", "mail_assets_tests.days.programs"])


def start_process(
    work: Callable[..., object], *arguments: object, environ: Mapping[str, str] = os.environ
) -> BaseProcess:
    """Start a process that runs a function, with the current environment of this process."""
    process = FORKS.Process(target=_work, args=({**environ}, work, arguments))
    process.start()
    return process


def _work(
    environ: dict[str, str], work: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    work(*arguments)
