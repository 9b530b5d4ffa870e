"""Measures of results, their intervals, and the table.

first        share of the questions whose first result is right
in ten       mean share of the right ones that are among the first ten results
MRR          mean of 1 / rank of the first right one, 0 below the twentieth
right        share of the answers that are right: of those that give any, how many give a right one
             first; for versions the share of all results
none said    share of the questions without an answer for which nothing is given

Results of which nobody knows whether they are right ("unknown" of an answer) are left out before
anything is measured, as in condensed lists (Sakai 2007).

A system that returns the nearest ten of anything has a low "right" and "none said": these two
matter where an answer is acted on.

Intervals hold 95 % of the means of RESAMPLES samples of the groups, not of the questions: messages
of one discussion are not independent (cluster bootstrap: Field, Welsh 2007).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.yardstick.sets import JudgedSet
from benchmarks.yardstick.systems import Result

RESAMPLES, SEED = 2_000, 20_240_301
MEASURES = ("first", "in ten", "MRR", "right", "none said")
#: Digits from which a shortened id names a commit.
SHORTEST = 7


class Figure(NamedTuple):
    """A measure of a system on a set, with its interval, over so many questions."""

    value: float
    low: float
    high: float
    questions: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Row(NamedTuple):
    """The measures of a system on a set; `note` stands in their place where there are none."""

    set: str
    system: str
    figures: Mapping[str, Figure]
    note: str = ""


#: Sum and weight that a question adds to each measure.
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
    """Return what each question adds to each measure."""
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
    """Return the whole ids of commits that are given whole or shortened.

    Ids of other repositories, which mail may name, are neither right nor wrong.
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
