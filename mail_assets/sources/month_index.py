"""Find the month of each message of a source, looking at each message once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mail_assets.sources.cached_pairs import Pairs, read_pairs, write_pairs
from mail_assets.sources.message_month import RULE, month_of_message


class Arrival(NamedTuple):
    """A message as its source keeps it; `arrived` is None where the source knows no time."""

    key: str
    raw: bytes
    arrived: datetime | None


def find_months(
    keys: Sequence[str], read: Callable[[Iterable[str]], Iterator[Arrival]], path: Path
) -> Pairs:
    """Return (month, key) for each key, reading only the messages that the file at `path` lacks.

    A key names the bytes of a message for good. What `read` leaves out has no month.
    """
    rule, pairs = read_pairs(path)
    known = {key: month for month, key in pairs} if rule == RULE else {}
    missing = [key for key in keys if key not in known]
    for message in read(missing):
        known[message.key] = month_of_message(message.raw, message.arrived)
    months = [(known[key], key) for key in keys if key in known]
    if (RULE, months) != (rule, pairs):
        write_pairs(path, RULE, months)
    return months
