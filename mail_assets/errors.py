"""Base classes of the errors of mail_assets; interfaces handle errors by these bases only.

MailAssetsError          expected: its text names the thing, the fault and the remedy
 ├─ WrongInputError      a query, option, setting or file of the caller is wrong: correct it
 ├─ NotFoundError        nothing is stored under the given name
 ├─ MonthError           one month of a list fails; the other months continue
 ├─ UnavailableError     a server, an index or a file does not respond now: try again later
 └─ DamagedDataError     stored or fetched bytes are not what they should be

A class may have two of these bases: the failure of a vector index is an UnavailableError to a
search, and a MonthError to a run. Any other exception is a bug and keeps its traceback.
"""

from collections.abc import Iterable
from typing import ClassVar


class MailAssetsError(Exception):
    """An expected error: its text says what failed, where, and what to do."""


class WrongInputError(MailAssetsError, ValueError):
    """A query, an option, a setting or a file of the caller is wrong."""


class NotFoundError(MailAssetsError):
    """Nothing is stored under the given name."""


class MonthError(MailAssetsError):
    """One month of a list fails; the other months continue."""


class UnavailableError(MailAssetsError):
    """A server, an index or a file does not respond now.

    Public interfaces show `notice` in place of the text, which may name hosts and paths.
    """

    notice: ClassVar[str] = "the search cannot be answered at the moment"


class DamagedDataError(MailAssetsError):
    """Stored or fetched bytes are not what they should be."""


def name_nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return "did you mean NAME? " with the most similar known name, "" if none is similar."""
    from difflib import get_close_matches

    names = {one.lower(): one for one in known}
    near = get_close_matches(name[:100].lower(), [*names], n=1, cutoff=likeness)
    return f"did you mean {names[near[0]]}? " if near else ""


def name_some(names: Iterable[str], most: int = 3, separator: str = ", ") -> str:
    """Join at most `most` names, and count the others: "a, b and 3 more"."""
    every = [*names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return separator.join(every[:most]) + more
