"""The log of the embedded server: kept to a size, and what an error quotes of it."""

import os
import re
import shutil
from pathlib import Path

#: Bytes after which the log begins again; the former one is kept beside it.
MAX_LOG = 16 << 20

#: Lines of the log that an error quotes.
TAIL = 15

#: Bytes in which they are looked for.
TAIL_BYTES = 16_384

#: What ends a server or a session. Whoever asks while it recovers is only told so.
_FAILURE = re.compile(r"\b(?:FATAL|PANIC):(?! +the database system is )")


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
    return "".join(_last_lines(log)[-TAIL:])


def find_last_failure(log: Path) -> str:
    """Return the last line of a log's end that says FATAL or PANIC; empty where there is none."""
    lines = _last_lines(log) if log.exists() else []
    return next((line.strip() for line in reversed(lines) if _FAILURE.search(line)), "")


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines(keepends=True)
