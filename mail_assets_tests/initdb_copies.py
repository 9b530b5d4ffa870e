"""Data directories of test servers: one of each kind is made by initdb, the others are copied.

initdb takes 0.8 s of processor time, a copy 0.2 s; the tests start about sixty servers.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mail_assets.postgres.programs import Programs


@contextmanager
def initdb_once(kept: Path) -> Iterator[None]:
    """Run initdb once for each program and options; keep the results below a folder."""
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
    """Copy the content of a folder, with modes and owners."""
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)
