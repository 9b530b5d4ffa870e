"""Real archives outside the repository; without them, the tests that need them are skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.mail.archive.mbox import RawMessage, split_archive

CORPORA = Path(__file__).resolve().parents[2] / "../shared/corpora"

#: Archive -> (dialect, known number of messages).
KNOWN = {
    "linux-man": ("plain", 3_641),
    "linux-man-pgstyle": ("pg", 3_641),
    "pgsql-todo": ("plain", 1_593),
    "twisted-python": ("pipermail", 13_504),
    "pgsql-announce": ("pg", 14),
}


def archives(name: str) -> list[Path]:
    """The archives of a list by month, oldest first."""
    return _files(CORPORA / "archives" / name, "*.gz")


def messages(name: str) -> Iterator[tuple[str, RawMessage]]:
    """All messages of one list, each with the month (`YYYY-MM`) of its archive."""
    dialect, _ = KNOWN[name]
    for path in archives(name):
        stamp = path.stem.rpartition(".")[2]
        for raw in split_archive(path, dialect):
            yield f"{stamp[:4]}-{stamp[4:]}", raw


def strange_messages() -> list[Path]:
    """Malformed mail from the test suites of other parsers, one message per file."""
    return [path for path in _files(CORPORA / "torture", "**/*") if path.is_file()]


def reported(name: str) -> Path:
    """The path of a file from a public bug report."""
    return _files(CORPORA / "reported", name)[0]


def _files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        pytest.skip(f"the real mail is not here: {folder}")
    return found
