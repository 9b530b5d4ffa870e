"""Figures of counted searches, and their chart."""

import datetime as dt
from xml.etree import ElementTree

from mail_assets.defs.audit.chart import draw_days
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


def test_a_bar_is_as_high_as_its_day() -> None:
    days = {
        DAY: sum_up([part(50, 60), part(50, 20, hits=0), part(1, 20, 0, 503)]),
        DAY + dt.timedelta(days=2): sum_up([part(50, 50)]),
    }
    tree = ElementTree.fromstring(draw_days(days))
    bars = [
        (float(one.attrib["height"]), one.attrib["fill"])
        for one in tree.iter("{http://www.w3.org/2000/svg}rect")
        if "x" in one.attrib and float(one.attrib["y"]) > 20
    ]
    assert [(height / 160, colour) for height, colour in bars] == [
        (0.6, "#0072b2"),
        (0.2, "#cc79a7"),
        (0.2, "#d55e00"),
        (0.5, "#0072b2"),
    ]


def test_no_day_is_a_chart_too() -> None:
    ElementTree.fromstring(draw_days({}))
