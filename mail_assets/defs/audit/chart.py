"""The chart of searches by day: a bar for each, and what of it found nothing or failed."""

import base64
import datetime as dt
from collections.abc import Iterator, Mapping

import dagster as dg

from mail_assets.defs.audit.figures import Figures

WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 30, 30

#: Told apart by people who do not see red and green apart (Okabe, Ito 2008).
ANSWERED, IN_VAIN, FAILED = "#0072b2", "#cc79a7", "#d55e00"
LEGEND = ((ANSWERED, "with hits"), (IN_VAIN, "nothing found"), (FAILED, "not answered"))


def chart_days(days: Mapping[dt.date, Figures]) -> dg.MarkdownMetadataValue:
    """Return the chart of all days from the first to the last that has a search."""
    image = base64.b64encode(draw_days(days).encode()).decode()
    return dg.MetadataValue.md(f"![searches by day](data:image/svg+xml;base64,{image})")


def draw_days(days: Mapping[dt.date, Figures]) -> str:
    """Return a bar for each day as SVG."""
    parts = [*_draw_legend()]
    if days:
        first, count = min(days), (max(days) - min(days)).days + 1
        most = max(one.searches for one in days.values())
        width = (WIDTH - LEFT - RIGHT) / count
        for day, figures in sorted(days.items()):
            x = LEFT + (day - first).days * width
            parts += _draw_bar(x, max(1.0, width * 0.8), figures, most)
        parts += [
            _text(LEFT - 6, TOP + 4, f"{most:,}", "end"),
            _text(LEFT - 6, HEIGHT - BOTTOM, "0", "end"),
            _text(LEFT, HEIGHT - 10, f"{first}", "start"),
            _text(WIDTH - RIGHT, HEIGHT - 10, f"{max(days)}", "end"),
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _draw_bar(x: float, width: float, figures: Figures, most: int) -> Iterator[str]:
    """Yield the pieces of a bar, from the bottom up."""
    failed = figures.errors + figures.refused
    answered = figures.searches - failed
    in_vain = round(answered * (figures.nothing_found or 0))
    y = float(HEIGHT - BOTTOM)
    for count, colour in ((answered - in_vain, ANSWERED), (in_vain, IN_VAIN), (failed, FAILED)):
        height = (HEIGHT - TOP - BOTTOM) * count / most
        y -= height
        if count:
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                f'fill="{colour}"/>'
            )


def _draw_legend() -> Iterator[str]:
    for at, (colour, name) in enumerate(LEGEND):
        x = LEFT + at * 130
        yield f'<rect x="{x}" y="6" width="10" height="10" fill="{colour}"/>'
        yield _text(x + 16, 15, name, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#444444">{text}</text>'
