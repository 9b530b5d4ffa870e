"""Counting what a backfill did."""

import pytest

from mail_assets.defs.backfill.report import CHAIN, Report
from mail_assets.month import ListMonth

MARCH, APRIL = ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04")


def test_a_month_that_is_recorded_again_is_counted_once_and_its_work_twice() -> None:
    report = Report()
    report.add("mbox_archives", MARCH, {"found": 7, "bytes": 70, "fetched": 1})
    report.add("mbox_archives", MARCH, {"found": 7, "bytes": 70, "fetched": 0})
    report.add("mbox_archives", APRIL, {"found": 5, "bytes": 50, "fetched": 1})
    assert report.counts_of("mbox_archives") == {"found": 12, "bytes": 120, "fetched": 2}


def test_texts_that_an_earlier_attempt_encoded_are_not_reused() -> None:
    report = Report()
    report.add("embeddings", MARCH, {"texts": 9, "encoded": 6})
    report.add("embeddings", MARCH, {"texts": 9, "encoded": 0})
    assert report.counts_of("embeddings") == {"texts": 9, "encoded": 6, "reused": 3}


def test_an_asset_without_a_record_counts_zero_of_everything() -> None:
    report = Report()
    report.expect(CHAIN)
    assert report.assets == CHAIN
    assert not report.changed
    for asset in CHAIN:
        counts = report.counts_of(asset)
        assert counts
        assert not any(counts.values())


@pytest.mark.parametrize(
    ("held", "written", "deleted", "much"),
    [
        (1, 1, 0, True),
        (100, 1, 0, True),
        (100, 0, 1, True),
        (101, 1, 0, False),
        (1_000_000, 999, 0, False),
        (1_000_000, 999, 1, True),
    ],
)
def test_much_has_changed_from_a_hundredth_or_a_thousand_entries_on(
    held: int, written: int, deleted: int, much: bool
) -> None:
    report = Report()
    report.add("words", MARCH, {"documents": held, "written": written, "deleted": deleted})
    assert report.changed_much_in("words") is much
