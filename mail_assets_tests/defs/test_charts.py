"""Figures of counted searches."""

import datetime as dt

from mail_assets.defs.audit.figures import Figures, sum_up
from mail_assets.tables.search_audit import DayPart

DAY = dt.date(2024, 3, 4)


def part(ms: int, searches: int, hits: int = 10, status: int = 200) -> DayPart:
    return DayPart(DAY, "page", hits, ms, status, searches)


def test_figures_are_those_of_the_searches() -> None:
    parts = [
        part(50, 90),
        part(20, 5, hits=0),
        part(1000, 5),
        part(1, 3, 0, 400),
        part(5, 1, 0, 503),
    ]
    assert sum_up(parts) == Figures(104, 1, 3, 0.05, 50, 50)
    assert sum_up([part(10, 94), part(300, 6)]).p95_ms == 300
    assert sum_up([part(10, 95), part(300, 5)]).p95_ms == 10


def test_no_search_has_no_times() -> None:
    assert sum_up([]) == Figures(0, 0, 0, None, None, None)
    assert sum_up([part(1, 2, 0, 503)]) == Figures(2, 2, 0, None, None, None)
