"""Archives that a server makes from its database for the first and the last day of a month.

An archive without a message is taken for none: such a server has an answer for every month.
"""

from calendar import monthrange
from datetime import UTC, datetime

from mail_assets.month import months_between
from mail_assets.sources.archive_file import is_empty
from mail_assets.sources.source import Fetched, Unchanged


def months_since(start: str) -> dict[str, str]:
    """Return month -> "" from `start` to the running month (UTC): no listing names them."""
    return dict.fromkeys(months_between(start, f"{datetime.now(UTC):%Y-%m}"), "")


def days_of_month(month: str) -> tuple[str, str]:
    """Return the first and the last day of a month, "YYYY-MM-DD"."""
    year, number = map(int, month.split("-"))
    return f"{month}-01", f"{month}-{monthrange(year, number)[1]}"


def drop_empty(found: Fetched | Unchanged | None) -> Fetched | Unchanged | None:
    """Return None for an archive without a byte, and delete its file."""
    if isinstance(found, Fetched) and is_empty(found.path):
        found.path.unlink()
        return None
    return found
