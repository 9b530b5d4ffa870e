"""Tables of the results of several sizes in Markdown, with the exponent of the growth."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

#: Exponent above which a figure is reported as not linear.
LINEAR = 1.05

#: Figures that should be linear, as paths into a result; "*" matches each name.
TIMES = (
    "fill.processor",
    "fill.clock",
    "fill.stages.*.processor",
    "fill.steps.assets.*",
    "fill.steps.runs",
    "fill.steps.until_searchable",
    "fill.between_steps.processor",
    "sizes.mail.*",
    "sizes.dagster.all",
    "sizes.buckets.*",
    "sizes.event_rows",
    "unchanged.processor",
)
OTHERS = (
    "fill.months.*.*",
    "fill.steps.ranges.*.*",
    "fill.steps.between_share",
    "fill.peak_mb.*",
    "fill.between_steps.clock",
    "fill.between_steps.share",
    "fill.sizes_before_upkeep.buckets.*",
    "sizes.files.*",
    "queries.*.*.*",
    "unchanged.clock",
    "one_month.processor",
    "one_month.clock",
    "sizes_in_the_end.event_rows",
)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a file that finished filling, smallest corpus first.

    A run has a line for each part; an incomplete run has fewer lines.
    """
    runs: dict[float, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        part = json.loads(line)
        runs.setdefault(part["began"], {}).update(part)
    filled = [run for run in runs.values() if "counts" in run]
    return sorted(filled, key=lambda one: one["counts"]["messages"])


def tables(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of figures that should be linear, one of others, and the names that are not."""
    sizes = [one["counts"]["messages"] for one in results]
    flat = [flatten(one) for one in results]
    linear = frame(flat, sizes, TIMES)
    if len(results) > 1:
        linear["exponent"] = [
            exponent(sizes[-2:], row) for row in linear.iloc[:, -2:].to_numpy().tolist()
        ]
    yield linear.round(2).to_markdown()
    yield frame(flat, sizes, OTHERS).round(2).to_markdown()
    if len(results) > 1:
        names = [*linear.index[linear["exponent"] > LINEAR]]
        yield f"exponent above {LINEAR}: {', '.join(names) or 'none'}"


def frame(flat: Sequence[Mapping[str, float]], sizes: Sequence[int], wanted: Sequence[str]) -> Any:
    """Return a table with a column for each result."""
    names = [name for pattern in wanted for name in _matching(flat, pattern)]
    columns = {
        f"{size:,}": [one.get(name) for name in names]
        for size, one in zip(sizes, flat, strict=True)
    }
    return pd.DataFrame(columns, index=names, dtype=float)


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent of the growth of a value, nan if one is missing or 0."""
    small, big = values
    if not small > 0 or not big > 0:
        return math.nan
    return math.log(big / small) / math.log(sizes[1] / sizes[0])


def flatten(result: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers of a result by path: "fill.stages.messages.processor"."""
    found: dict[str, float] = {}
    for name, value in result.items():
        if isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            found[f"{prefix}{name}"] = value
    return found


def _matching(flat: Sequence[Mapping[str, float]], pattern: str) -> list[str]:
    wanted = pattern.split(".")
    return [
        *dict.fromkeys(
            name
            for one in flat
            for name in one
            if len(parts := name.split(".")) == len(wanted)
            and all(p in ("*", part) for p, part in zip(wanted, parts, strict=True))
        )
    ]
