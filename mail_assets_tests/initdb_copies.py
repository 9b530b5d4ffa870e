"""Data directories of test servers: initdb makes one of each kind, and the others are copies.

initdb takes 0.8 s of a processor, a copy 0.2 s, and the tests start some sixty servers.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mail_assets.postgres.programs import Programs


@contextmanager
def initdb_once(kept: Path) -> Iterator[None]:
    """Let initdb run once for each of its programs and options; copies are kept below a folder."""
    run = Programs.run
    made: dict[tuple[object, ...], Path] = {}

    def run_or_copy(programs: Programs, program: str, *arguments: object) -> None:
        if program != "initdb":
            return run(programs, program, *arguments)
        _, data, *options = arguments
        kind = (programs.folder, *options)
        if kind in made:
            return copy_folder(made[kind], data)
        run(programs, program, *arguments)
        made[kind] = kept / f"{len(made)}"
        return copy_folder(data, made[kind])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Programs, "run", run_or_copy)
        yield


def copy_folder(source: object, target: object) -> None:
    """Copy all that is in a folder, with its modes and owners."""
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)
