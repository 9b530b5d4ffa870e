"""A line chart of shares over time, as an SVG image in Markdown.

Dagster plots each number by itself; here several are in one chart, with an interval and the times
at which something was switched.
"""

import base64
import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 44, 110, 16, 30

#: Told apart by people who do not see red and green apart (Okabe, Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")

#: Pixels between the names at the right end, which are beside the last values.
LINE = 15


class Point(NamedTuple):
    """A value at a time (seconds since 1970), with the interval it is known to."""

    at: float
    value: float
    low: float
    high: float


class Series(NamedTuple):
    """A line of the chart; at least one point, oldest first."""

    name: str
    points: Sequence[Point]


class _Frame(NamedTuple):
    """From times and values to pixels."""

    first: float
    last: float
    low: float
    high: float

    def x(self, at: float) -> float:
        span = self.last - self.first
        share = (at - self.first) / span if span else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def chart_markdown(title: str, series: Sequence[Series], switches: Sequence[float] = ()) -> str:
    """Return a chart as a Markdown image; the interval is that of the first series."""
    image = base64.b64encode(draw(series, switches).encode()).decode()
    return f"![{title}](data:image/svg+xml;base64,{image})"


def draw(series: Sequence[Series], switches: Sequence[float] = ()) -> str:
    """Return a chart as SVG: a line for each series, a dashed one at each switch."""
    points = [point for one in series for point in one.points]
    frame = _Frame(
        first=min(point.at for point in points),
        last=max(point.at for point in points),
        low=max(0.0, math.floor(min(point.low for point in points) * 10) / 10),
        high=min(1.0, math.ceil(max(point.high for point in points) * 10) / 10) or 0.1,
    )
    if frame.low == frame.high:
        frame = frame._replace(low=frame.low - 0.1)
    parts = [*_axes(frame), *_switches(frame, switches), *_band(frame, series[0])]
    for colour, one in zip(COLOURS, series, strict=False):
        parts += _line(frame, one, colour)
    parts += _names(frame, series)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _axes(frame: _Frame) -> Iterator[str]:
    for tenth in range(round(frame.low * 10), round(frame.high * 10) + 1):
        y = frame.y(tenth / 10)
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield _text(LEFT - 6, y + 4, f"{tenth / 10:.1f}", anchor="end")
    days = dict.fromkeys(_day(at) for at in (frame.first, frame.last))
    if len(days) == 1:
        yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, *days, anchor="middle")
    else:
        for day, x, anchor in zip(days, (LEFT, WIDTH - RIGHT), ("start", "end"), strict=True):
            yield _text(x, HEIGHT - 8, day, anchor=anchor)


def _switches(frame: _Frame, switches: Sequence[float]) -> Iterator[str]:
    for at in switches:
        x = frame.x(at)
        yield f'<path d="M{x} {TOP}V{HEIGHT - BOTTOM}" stroke="#888888" stroke-dasharray="4 3"/>'
        right = x > (LEFT + WIDTH - RIGHT) / 2
        side, anchor = (-4, "end") if right else (4, "start")
        yield _text(x + side, TOP + 10, "another index", anchor=anchor)


def _band(frame: _Frame, one: Series) -> Iterator[str]:
    upper = [f"{frame.x(p.at)},{frame.y(p.high)}" for p in one.points]
    lower = [f"{frame.x(p.at)},{frame.y(p.low)}" for p in reversed(one.points)]
    # the outline is what there is to see of a single point
    yield (
        f'<polygon points="{" ".join(upper + lower)}" fill="{COLOURS[0]}" '
        f'stroke="{COLOURS[0]}" opacity="0.15"/>'
    )


def _line(frame: _Frame, one: Series, colour: str) -> Iterator[str]:
    places = [(frame.x(p.at), frame.y(p.value)) for p in one.points]
    points = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'


def _names(frame: _Frame, series: Sequence[Series]) -> Iterator[str]:
    """Yield the names with the last values, from the top, none over another."""
    last = sorted(
        (frame.y(one.points[-1].value), colour, one)
        for colour, one in zip(COLOURS, series, strict=False)
    )
    floor = float(TOP)
    for y, colour, one in last:
        floor = max(y + 4, floor + LINE)
        named = f"{one.name} {one.points[-1].value:.3f}"
        yield _text(WIDTH - RIGHT + 8, floor, named, colour=colour)


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#444444") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _day(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d}"
