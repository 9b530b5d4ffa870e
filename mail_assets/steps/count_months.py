"""Count what an index has of each month, by one look at all of it."""

from collections.abc import Mapping

from mail_assets.month import ListMonth, month_number
from mail_assets.vectors.errors import MissingIndexError
from mail_assets.vectors.index import VectorIndex
from mail_assets.words.errors import MissingWordsError
from mail_assets.words.index import WordIndex


class MonthCounts:
    """The entries of an index by list and month; an index that is not there has none."""

    def __init__(self, counts: Mapping[tuple[object, ...], int]) -> None:
        self._counts = counts

    def of(self, month: ListMonth) -> int:
        """Return how many entries a month has."""
        return self._counts.get((month.list_name, month_number(month.month)), 0)


def count_vectors(index: VectorIndex) -> MonthCounts | None:
    """Count vectors by month; None where the bucket would have to list every key."""
    try:
        if not index.capabilities.list_filter:
            index.describe()  # one request, which tells whether there is an index
            return None
        return MonthCounts(index.count_groups(["list", "month"]))
    except MissingIndexError:
        return MonthCounts({})


def count_documents(index: WordIndex) -> MonthCounts:
    """Count the documents of a word index by month."""
    try:
        return MonthCounts(index.count_groups(["list", "month"]))
    except MissingWordsError:
        return MonthCounts({})
