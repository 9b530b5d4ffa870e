"""The chart of nDCG@10 over time: a line for each mode, a mark where another index was asked."""

from collections.abc import Sequence
from itertools import pairwise

import dagster as dg

from mail_assets.defs.quality.history import Measurement
from mail_assets.defs.quality.svg_chart import Point, Series, chart_markdown
from mail_assets.search.request import MODES


def chart_quality(measurements: Sequence[Measurement]) -> dg.MarkdownMetadataValue:
    """Return the chart over the measurements that asked the same queries as the last one."""
    alike = [one for one in measurements if one.judged_set == measurements[-1].judged_set]
    series = [
        Series(
            mode,
            [_point(one, f"{mode}_ndcg10") for one in alike if f"{mode}_ndcg10" in one.numbers],
        )
        for mode in MODES
    ]
    switches = [
        now.at
        for before, now in pairwise(alike)
        if (before.bucket, before.name) != (now.bucket, now.name)
    ]
    return dg.MetadataValue.md(chart_markdown("nDCG@10 over time", series, switches))


def _point(one: Measurement, name: str) -> Point:
    value, low, high = (one.numbers[f"{name}{end}"] for end in ("", "_low", "_high"))
    return Point(one.at, value, low, high)
