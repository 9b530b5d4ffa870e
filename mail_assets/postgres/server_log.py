"""The log of the embedded server: kept to a size, and what an error quotes of it."""

import os
import shutil
from pathlib import Path

#: Bytes after which the log begins again; the former one is kept beside it.
MAX_LOG = 16 << 20

#: Lines of the log that an error quotes.
TAIL = 15

#: Bytes in which they are looked for.
TAIL_BYTES = 16_384


def former_log(log: Path) -> Path:
    """Return where the log is kept that was too large."""
    return log.with_name(f"{log.name}.1")


def rotate_log(log: Path) -> None:
    """Move the lines of a log that is too large beside it.

    They are copied and the file is cut, not renamed: a running server holds it open, to append
    (`pg_ctl -l`). That needs no restart and no second place to look for what it said at its start.
    """
    if log.exists() and log.stat().st_size > MAX_LOG:
        shutil.copy2(log, former_log(log))
        os.truncate(log, 0)


def read_tail(log: Path) -> str:
    """Return the last lines of a log."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines(keepends=True)
    return "".join(lines[-TAIL:])
