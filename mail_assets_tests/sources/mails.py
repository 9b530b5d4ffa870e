"""Single messages, and the contents of an archive made from them."""

from pathlib import Path

from mail_assets.mail.archive.mbox import split_mbox
from mail_assets.month import ListMonth
from mail_assets.sources.open import open_source
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions

MARCH_DATE, APRIL_DATE = "Tue, 05 Mar 2024 10:00:00 +0000", "Mon, 01 Apr 2024 10:00:00 +0000"


def mail(number: int, date: str = MARCH_DATE, body: str = "Hello\n", more: str = "") -> bytes:
    """Return a message; `more` are further fields."""
    dated = f"Date: {date}\n" if date else ""
    return (
        f"From: ann@example.org\nMessage-ID: <{number}@example.org>\n{dated}{more}\n{body}"
    ).encode()


def split_mboxrd(data: bytes) -> list[bytes]:
    return [message.raw for message in split_mbox(data, "mboxrd")]


def open_list(source: str | Path, cache: Path, kind: str = "") -> ArchiveSource:
    """Open a source of the list dev that gives up at the first failure."""
    place = f"{kind}:{source}" if kind else str(source)
    return open_source("dev", place, start="2024-02", options=HttpOptions(attempts=1), cache=cache)


def fetch_all(source: ArchiveSource, folder: Path) -> dict[str, bytes]:
    archives = {}
    for month, version in source.versions().items():
        found = source.fetch(month, folder / month.month)
        assert isinstance(found, Fetched)
        assert found.version == version
        archives[month.month] = found.path.read_bytes()
    return archives


def fetch_months(source: ArchiveSource, folder: Path) -> dict[str, list[bytes]]:
    """Return the messages of each month that a source lists, written as mboxrd."""
    return {month: split_mboxrd(data) for month, data in fetch_all(source, folder).items()}


MARCH_2024, APRIL_2024 = ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04")
