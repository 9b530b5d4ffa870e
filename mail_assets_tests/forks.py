"""Processes of tests, forked from one that has imported what takes seconds: LanceDB and Dagster."""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess

#: Whose pipes, queues and barriers the processes share.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mail_assets_tests.world", "mail_assets_tests.days.programs"])


def start_process(
    work: Callable[..., object], *arguments: object, environ: Mapping[str, str] = os.environ
) -> BaseProcess:
    """Start a process that does some work, in an environment: that of this process as it is now."""
    process = FORKS.Process(target=_work, args=({**environ}, work, arguments))
    process.start()
    return process


def _work(
    environ: dict[str, str], work: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    work(*arguments)
