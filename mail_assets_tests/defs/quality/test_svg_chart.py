"""A chart is well-formed SVG whose points stand where their values say."""

import base64
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.defs.quality.svg_chart import HEIGHT, WIDTH, Point, Series, chart_markdown, draw

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def points(draw_: st.DrawFn) -> list[Point]:
    times = sorted(draw_(st.lists(st.floats(0, 2e9), min_size=1, max_size=8)))
    made = []
    for at in times:
        low, value, high = sorted(draw_(st.tuples(*[st.floats(0, 1)] * 3)))
        made.append(Point(at, value, low, high))
    return made


@settings(max_examples=100)
@given(st.lists(points(), min_size=1, max_size=3))
def test_every_point_is_inside_and_higher_values_stand_higher(lines: list[list[Point]]) -> None:
    series = [Series(f"<mode {n}>", line) for n, line in enumerate(lines)]
    root = ElementTree.fromstring(draw(series, [lines[0][0].at]))
    circles = [
        (float(one.get("cx", "")), float(one.get("cy", ""))) for one in root.iter(f"{SVG}circle")
    ]
    flat = [point for line in lines for point in line]
    assert len(circles) == len(flat)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in circles)
    order = sorted(zip(flat, circles, strict=True), key=lambda pair: pair[0].value)
    heights = [y for _, (_, y) in order]
    assert heights == sorted(heights, reverse=True)


def test_names_with_last_values_do_not_overlap_and_switches_are_drawn() -> None:
    same = [Point(0, 0.5, 0.4, 0.6), Point(86_400 * 40, 0.5, 0.4, 0.6)]
    root = ElementTree.fromstring(draw([Series("a", same), Series("b", same)], [86_400.0]))
    texts = [(one.text, float(one.get("y", ""))) for one in root.iter(f"{SVG}text")]
    named = dict(texts)
    assert abs(named["a 0.500"] - named["b 0.500"]) >= 12
    assert {"1970-01-01", "1970-02-10", "another index"} <= named.keys()


def test_markdown_holds_the_image_itself() -> None:
    text = chart_markdown("over time", [Series("a", [Point(0, 1, 1, 1)])])
    head, _, data = text.removesuffix(")").partition("base64,")
    assert head == "![over time](data:image/svg+xml;"
    assert base64.b64decode(data).startswith(b"<svg ")
