"""Files below MAIL_HOME/cache in which a source remembers what it has found out.

Each may be deleted at any time. The first line is the state of the source that the file belongs
to; each further one is a pair, separated by a tab.
"""

from collections.abc import Iterable
from pathlib import Path

from mail_assets.sources.whole_file import write_whole

Pairs = list[tuple[str, str]]


def read_pairs(path: Path) -> tuple[str, Pairs]:
    """Return the state and the pairs; ("", []) where there is no such file, or no whole one."""
    try:
        with path.open(encoding="ascii", newline="\n") as file:
            state = file.readline().rstrip("\n")
            pairs = [line.rstrip("\n").split("\t") for line in file]
            return state, [(first, second) for first, second in pairs]
    except (FileNotFoundError, ValueError):  # a damaged one is as good as a missing one
        return "", []


def write_pairs(path: Path, state: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Replace the file; a reader sees the old one or the new one."""
    with write_whole(path) as file:
        file.write(f"{state}\n".encode("ascii"))
        file.writelines(f"{first}\t{second}\n".encode("ascii") for first, second in pairs)
