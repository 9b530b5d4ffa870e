"""Dagster's programs, for processes that have imported them and the definitions."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import dagster._cli
import dagster_dg_cli.cli

import mail_assets.defs.definitions  # noqa: F401

PROGRAMS: Mapping[str, Callable[[], object]] = {
    "dagster": dagster._cli.main,
    "dg": dagster_dg_cli.cli.main,
}


def run_program(arguments: list[str], folder: Path, output: Path) -> None:
    """Run a program in a folder; both of its outputs go into a file."""
    os.chdir(folder)
    with output.open("wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.argv = arguments
    PROGRAMS[arguments[0]]()
