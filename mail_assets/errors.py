"""Errors of mail_assets. A surface decides by these bases, never by a list of names.

MailAssetsError          expected: its text names the thing, the fault and the remedy
 ├─ WrongInputError      a query, option, setting or file of the caller is wrong: correct it
 ├─ NotFoundError        nothing is stored under the name that was given
 ├─ MonthError           one month of a list fails; the other months go on
 ├─ UnavailableError     a server, an index or a file does not answer now: try again later
 └─ DamagedDataError     stored or fetched bytes are not what they should be

A class may have two of these bases: a vector index that fails is unavailable to a search, and
fails one month of a run. Any other exception is a fault of the program and keeps its traceback.
"""

from collections.abc import Iterable
from typing import ClassVar


class MailAssetsError(Exception):
    """An expected error: its text says what failed, where, and what to do."""


class WrongInputError(MailAssetsError, ValueError):
    """A query, an option, a setting or a file of the caller is wrong."""


class NotFoundError(MailAssetsError):
    """Nothing is stored under the name that was given."""


class MonthError(MailAssetsError):
    """One month of a list fails; the other months go on."""


class UnavailableError(MailAssetsError):
    """A server, an index or a file does not answer now.

    `notice` is what strangers read instead of the text, which may name hosts and paths.
    """

    notice: ClassVar[str] = "the search cannot be answered at the moment"


class DamagedDataError(MailAssetsError):
    """Stored or fetched bytes are not what they should be."""


def name_nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return a question for the known name nearest to an unknown one, "" if none is near."""
    from difflib import get_close_matches

    names = {one.lower(): one for one in known}
    near = get_close_matches(name[:100].lower(), [*names], n=1, cutoff=likeness)
    return f"did you mean {names[near[0]]}? " if near else ""
