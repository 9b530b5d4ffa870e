"""Which versions of a table a reader may still be on."""

import datetime as dt

import pytest

from mail_assets.lance.upkeep import oldest_in_use


def at(hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2024, 5, 1, hour, minute, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("written", "began", "oldest"),
    [
        ([at(8)], at(9), at(8)),
        ([at(8)], at(7), at(8)),
        # current for hours, until a minute ago
        ([at(8), at(8, 30), at(11, 59)], at(11, 50), at(8, 30)),
        ([at(11, 59), at(8, 30), at(8)], at(12), at(11, 59)),
        ([at(8), at(9)], at(9), at(9)),
    ],
    ids=["one", "all after", "replaced since", "unsorted", "just written"],
)
def test_the_oldest_version_in_use_is_that_which_was_the_newest_when_a_reader_began(
    written: list[dt.datetime], began: dt.datetime, oldest: dt.datetime
) -> None:
    assert oldest_in_use(written, began) == oldest
