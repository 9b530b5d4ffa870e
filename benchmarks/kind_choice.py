"""Tables of ways to add a kind of content, and of what a chosen way has on other queries."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.mixes import FOLDS, REPEATS
from mail_assets.evaluation.quality import estimate_mean

#: The figures of the queries of each kind of question.
Figures: TypeAlias = Mapping[str, Sequence[float]]
#: Which queries are held out, in the same form.
Out: TypeAlias = Mapping[str, Sequence[bool]]


class Way(NamedTuple):
    """A way to add a kind, see kinds.py; without `how` it is left out."""

    how: str = ""
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.how} {self.amount}" if self.how else "chunks alone"


def tabulate(rated: Mapping[Way, Figures]) -> str:
    """Return a row for each way: figures of chunks alone, and differences to them."""
    base = rated[Way()]
    rows = {str(Way()): {kind: f"{np.mean(values):.3f}" for kind, values in base.items()}}
    for way in rated.keys() - {Way()}:
        rows[str(way)] = {k: _write_gain(values, base[k]) for k, values in rated[way].items()}
    return str(pd.DataFrame(rows).T.sort_index().to_markdown())


def _write_gain(values: Sequence[float], base: Sequence[float]) -> str:
    one = estimate_mean([a - b for a, b in zip(values, base, strict=True)])
    return f"{one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"


def print_choice(rated: Mapping[Way, Figures], asked: Iterable[tuple[str, str]]) -> None:
    """Print what the way that is best on some queries has on the others, less chunks alone.

    `asked` are the kind of question and the list of each query, in the order of the figures.
    """
    lists: dict[str, list[str]] = {}
    for kind, name in asked:
        lists.setdefault(kind, []).append(name)
    gains: list[float] = []
    chosen: Counter[str] = Counter()
    for repeat, fold in product(range(REPEATS), range(FOLDS)):
        chance = random.Random(repeat)
        out = {k: [chance.randrange(FOLDS) == fold for _ in names] for k, names in lists.items()}
        way, gain = _choose(rated, out)
        gains.append(gain)
        chosen[str(way)] += 1
    print(f"held out queries: {np.mean(gains):+.4f}, chosen {dict(chosen.most_common())}")
    for name in sorted({one for names in lists.values() for one in names}):
        out = {k: [one == name for one in names] for k, names in lists.items()}
        way, gain = _choose(rated, out)
        print(f"{name} held out: {gain:+.4f}, chosen {way}")


def _choose(rated: Mapping[Way, Figures], out: Out) -> tuple[Way, float]:
    """Return the way that is best on what is not held out, and its gain on what is."""
    way = max(rated, key=lambda one: _mean(rated[one], out, held_out=False))
    gain = _mean(rated[way], out, held_out=True) - _mean(rated[Way()], out, held_out=True)
    return way, gain


def _mean(figures: Figures, out: Out, *, held_out: bool) -> float:
    """Return the mean over the kinds of question that have any such query."""
    parts = [
        [value for value, o in zip(values, out[kind], strict=True) if o == held_out]
        for kind, values in figures.items()
    ]
    return float(np.mean([np.mean(part) for part in parts if part]))
