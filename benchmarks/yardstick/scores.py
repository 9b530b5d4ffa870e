"""Measures of results, their intervals, and the table.

first        share of the questions whose first result is right
in ten       mean share of the right results that are among the first ten
MRR          mean of 1 / rank of the first right result, 0 below rank 20
right        share of the answered questions whose first result is right; for versions, share of all
             results that are right
none said    share of the questions without an answer that get no result

Results that nobody has judged ("unknown" of an answer) are removed first, as in condensed lists
(Sakai 2007).

A system that always returns the ten nearest mails has a low "right" and "none said". These two
matter if people act on an answer.

Intervals have 95 % of the means of RESAMPLES bootstrap samples of groups, not of questions, because
messages of one discussion are not independent (cluster bootstrap: Field, Welsh 2007).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.yardstick.sets import JudgedSet
from benchmarks.yardstick.systems import Result

RESAMPLES, SEED = 2_000, 20_240_301
MEASURES = ("first", "in ten", "MRR", "right", "none said")
#: Minimum digits of an abbreviated commit id.
SHORTEST = 7


class Figure(NamedTuple):
    """A measure of a system on a set, its interval, and the number of questions."""

    value: float
    low: float
    high: float
    questions: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Row(NamedTuple):
    """Measures of a system on a set; `note` explains why there are none."""

    set: str
    system: str
    figures: Mapping[str, Figure]
    note: str = ""


#: Measure -> value and weight that a question adds.
Parts = dict[str, tuple[float, float]]


def score(judged: JudgedSet, system: str, results: Iterable[Result]) -> Row:
    """Return the row of a system on a set."""
    found = {one.id: one.found for one in results}
    parts = _judge(judged, found)
    groups = {one.id: one.group for one in judged.answers}
    figures = {}
    for measure in MEASURES:
        sums = {id: some[measure] for id, some in parts.items() if measure in some}
        if any(weight for _, weight in sums.values()):
            figures[measure] = estimate([*sums.values()], [groups[id] for id in sums])
    return Row(judged.name, system, figures)


def _judge(judged: JudgedSet, found: Mapping[str, Sequence[str]]) -> dict[str, Parts]:
    """Return the parts of each question."""
    parts = {}
    by_id = {one.id: one for one in judged.answers}
    commits = sorted({sha for one in judged.answers for sha in one.relevant})
    for one in (by_id[asked.id] for asked in judged.questions):
        unknown = one.more.get("unknown", ())
        given = [x for x in found.get(one.id, ()) if x not in unknown]
        if judged.name == "outcomes":
            given = _known_commits(given, commits)
        if not one.relevant:
            parts[one.id] = {"none said": (float(not given), 1.0)}
            continue
        parts[one.id] = _rank(one.relevant, given)
        if judged.name in ("versions", "retitled"):
            right = sum(x in one.relevant for x in given)
            parts[one.id]["right"] = (right, len(given))
    return parts


def _rank(relevant: Sequence[str], given: Sequence[str]) -> Parts:
    ranks = [rank for rank, one in enumerate(given, 1) if one in relevant]
    first = float(ranks[:1] == [1])
    return {
        "first": (first, 1.0),
        "in ten": (sum(rank <= 10 for rank in ranks) / min(10, len(relevant)), 1.0),
        "MRR": (1 / ranks[0] if ranks else 0.0, 1.0),
        "right": (first, float(bool(given))),
    }


def _known_commits(given: Sequence[str], commits: Sequence[str]) -> list[str]:
    """Return the whole ids of commits, which may be abbreviated in results.

    Mail can name commits of other repositories: their ids are neither right nor wrong.
    """
    found = []
    for one in given:
        short = one.lower()
        if len(short) >= SHORTEST:
            found += [sha for sha in commits if sha.startswith(short)]
    return found


def estimate(sums: Sequence[tuple[float, float]], groups: Sequence[str]) -> Figure:
    """Return the ratio of two sums over questions, with the interval over resampled groups."""
    of_group: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for pair, group in zip(sums, groups, strict=True):
        if pair[1]:
            of_group[group].append(pair)
    totals = np.array([np.sum(of_group[one], axis=0) for one in sorted(of_group)])
    draws = np.random.default_rng(SEED).integers(len(totals), size=(RESAMPLES, len(totals)))
    drawn = totals[draws].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    whole = totals.sum(axis=0)
    count = sum(bool(weight) for _, weight in sums)
    return Figure(float(whole[0] / whole[1]), float(low), float(high), count)


def describe_sets(sets: Iterable[JudgedSet]) -> Iterator[str]:
    """Yield the sizes of the sets as a table in Markdown."""
    yield "| set | questions | without an answer | groups |"
    yield "|---|---|---|---|"
    for one in sets:
        asked = {question.id for question in one.questions}
        answers = [answer for answer in one.answers if answer.id in asked]
        without = sum(not answer.relevant for answer in answers)
        groups = len({answer.group for answer in answers})
        yield f"| {one.name} | {len(asked)} | {without} | {groups} |"


def tabulate(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the table of all rows in Markdown, set by set."""
    yield f"| set | system | {' | '.join(MEASURES)} |"
    yield "|---|---|" + "---|" * len(MEASURES)
    for row in rows:
        cells = [str(row.figures.get(one, "")) for one in MEASURES]
        if row.note:
            cells[0] = row.note
        yield f"| {row.set} | {row.system} | {' | '.join(cells)} |"
