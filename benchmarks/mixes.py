"""Compare ways to fuse two rankings, on judged sets: the table of docs/search.md.

    MAIL_HOME=... python -m benchmarks.mixes LIST=FOLDER [LIST=FOLDER ...]

A FOLDER holds queries.jsonl and qrels.tsv, which are searched for in LIST; the message that a
query's `citing` names is left out, as if it were not in the list. Sets are rated by nDCG@10 over
the queries with three or more relevant messages, those with one relevant message a query by MRR;
sets whose names agree up to the first dash are one column, and columns weigh the same. Below the
table the weights of fusion.py are chosen by 5-fold cross-validation, 10 times.
"""

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import LiteralString, NamedTuple
from unittest.mock import patch

import pandas as pd

from mail_assets.cli.searcher import open_configured_searcher
from mail_assets.evaluation.judged import JudgedQuery, read_judged
from mail_assets.evaluation.measures import ndcg, reciprocal_rank
from mail_assets.search import fusion
from mail_assets.search.candidates import Candidate, read_candidates
from mail_assets.search.filters import MessageFilter, compile_filters
from mail_assets.search.fulltext_leg import rank_fulltext
from mail_assets.search.fusion import (
    LegWeights,
    add_thread_messages,
    fuse,
    rank_single_leg,
    select_threads,
    weigh_legs,
)
from mail_assets.search.query import read_query
from mail_assets.search.request import MAX_QUERY, Request
from mail_assets.search.searcher import Searcher
from mail_assets.search.syntax import parse_request
from mail_assets.settings.environment import load_settings

RRF_K = 60  # Cormack, Clarke, Buettcher 2009
FOLDS, REPEATS = 5, 10
#: MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT, THREAD_WEIGHT.
GRID = [*product((0.3, 0.5, 0.7), (0.8, 0.9, 0.95), (1.0, 2.0, 3.0, 4.0))]


class Answered(NamedTuple):
    """What the legs found for a query; `members` are those of the threads in it."""

    one: JudgedQuery
    semantic: list[Candidate]
    fulltext: list[Candidate]
    covered: float
    members: list[Candidate]


Way = Callable[[Answered], list[Candidate]]


class Without(MessageFilter):
    """MessageFilter that one message does not pass."""

    def statement(self, name: str) -> LiteralString:
        """Return a statement that leaves out the message."""
        passes = "m.list = any(%(lists)s)"
        return super().statement(name).replace(passes, f"{passes} and m.message_id <> %(source)s")


def main() -> None:
    """Print the table, then what cross-validation chooses."""
    parser = argparse.ArgumentParser(description="Compare ways to fuse two rankings.")
    parser.add_argument("sets", nargs="+", metavar="LIST=FOLDER")
    arguments = parser.parse_args()
    with open_configured_searcher(load_settings()) as searcher:
        sets = {
            Path(folder).name: read_judged_set(searcher, name, Path(folder))
            for name, _, folder in (one.partition("=") for one in arguments.sets)
        }
    rows = {name: columns(rate(way, sets)) for name, way in WAYS.items()}
    print(pd.DataFrame(rows).T.round(3).to_markdown())
    print()
    validate(sets)


def read_judged_set(searcher: Searcher, name: str, folder: Path) -> list[Answered]:
    """Ask the legs every query of a set; of topics those with 3 relevant messages or more."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    sources = {one["_id"]: one.get("citing", "") for one in map(json.loads, lines)}
    judged = read_judged(folder / "queries.jsonl", folder / "qrels.tsv", 1)
    least = 3 if any(len(one.relevant) > 1 for one in judged) else 1
    return [
        answer(searcher, name, one, sources[one.query_id])
        for one in judged
        if len(one.relevant) >= least
    ]


def answer(searcher: Searcher, name: str, one: JudgedQuery, source: str) -> Answered:
    """Ask the legs one query, of one list, without one message."""
    retriever = searcher.retriever
    connection, leg = retriever.connection, retriever.semantic_leg
    leg.vectors.warm_up()
    parsed = parse_request(Request(one.text[:MAX_QUERY], lists=(name,)))
    filters = compile_filters(connection, parsed.clauses, retriever.languages)
    if filters is None:
        raise SystemExit(f"nothing is in {name}")
    if source:
        parameters = filters.parameters | {"source": source}
        filters = Without(
            filters.conditions, parameters, filters.index_filters, filters.index_checks_all
        )
    query = read_query(connection, parsed, retriever.languages, filters.lists)
    filters = filters.require_words(query.by_language)
    ranking = rank_fulltext(connection, query, filters)
    semantic = leg.rank(query.text, filters)
    threads = [c.thread_id for c in (*semantic, *ranking.candidates) if c.thread_id]
    members = read_candidates(connection, filters, "members", threads=threads, most=100_000)
    return Answered(one, semantic, ranking.candidates, ranking.covered, members)


def mixed(mix: Callable[[float], LegWeights], lifted: bool = True) -> Way:
    """Return a fusion by scores, with the thread's evidence or without."""

    def way(a: Answered) -> list[Candidate]:
        with patch.object(fusion, "THREAD_WEIGHT", fusion.THREAD_WEIGHT if lifted else 0.0):
            fused = fuse(a.semantic, a.fulltext, mix(a.covered))
        if not lifted:
            return fused
        threads = {*select_threads(fused)}
        return add_thread_messages(fused, [one for one in a.members if one.thread_id in threads])

    return way


def reciprocal_ranks(a: Answered) -> list[Candidate]:
    """Fuse by 1 / (RRF_K + rank)."""
    scores: dict[str, float] = {}
    known = {one.message_id: one for one in (*a.semantic, *a.fulltext)}
    for leg in (a.semantic, a.fulltext):
        for rank, one in enumerate(leg, 1):
            scores[one.message_id] = scores.get(one.message_id, 0.0) + 1 / (RRF_K + rank)
    return [known[i] for i in sorted(scores, key=lambda i: (-scores[i], i))]


def fixed(words: float) -> Callable[[float], LegWeights]:
    """Return a mix that does not look at the question."""
    return lambda _: LegWeights(1 - words, words)


WAYS: dict[str, Way] = {
    "semantic": lambda a: rank_single_leg("semantic", a.semantic),
    "BM25": lambda a: rank_single_leg("fulltext", a.fulltext),
    "semantic, thread": mixed(fixed(0.0)),
    "BM25, thread": mixed(fixed(1.0)),
    "reciprocal ranks": reciprocal_ranks,
    **{f"words {w}": mixed(fixed(w), lifted=False) for w in (0.3, 0.5, 0.7)},
    **{f"words {w}, thread": mixed(fixed(w)) for w in (0.3, 0.5, 0.7)},
    "by what is covered": mixed(weigh_legs, lifted=False),
    "by what is covered, thread": mixed(weigh_legs),
}


def rate(way: Way, sets: dict[str, list[Answered]]) -> dict[str, list[float]]:
    """Return a figure for each query of each set."""
    rated = {}
    for name, answers in sets.items():
        single = all(len(a.one.relevant) == 1 for a in answers)
        rankings = [[c.message_id for c in way(a)] for a in answers]
        rated[name] = [
            reciprocal_rank(r[:50], a.one.relevant) if single else ndcg(r, a.one.relevant, 10)
            for r, a in zip(rankings, answers, strict=True)
        ]
    return rated


def columns(rated: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each kind of set, and the mean of these."""
    kinds: dict[str, list[float]] = {}
    for name, values in rated.items():
        if values:
            kinds.setdefault(name.partition("-")[0], []).append(sum(values) / len(values))
    means = {kind: sum(values) / len(values) for kind, values in kinds.items()}
    return means | {"mean": sum(means.values()) / len(means)}


def validate(sets: dict[str, list[Answered]]) -> None:
    """Choose the settings on four fifths of the queries, rate them on the last."""
    rated = {}
    for least, most, thread in GRID:
        with patch.multiple(
            fusion, MIN_FULLTEXT_WEIGHT=least, MAX_FULLTEXT_WEIGHT=most, THREAD_WEIGHT=thread
        ):
            rated[least, most, thread] = rate(mixed(weigh_legs), sets)
    chosen: list[tuple[float, float, float]] = []
    figures: list[tuple[float, float]] = []
    now = (fusion.MIN_FULLTEXT_WEIGHT, fusion.MAX_FULLTEXT_WEIGHT, fusion.THREAD_WEIGHT)
    for repeat in range(REPEATS):
        chance = random.Random(repeat)
        folds = {name: [chance.randrange(FOLDS) for _ in of] for name, of in sets.items()}
        for fold in range(FOLDS):
            best = max(GRID, key=lambda g: _mean(rated[g], folds, fold, held_out=False))
            chosen.append(best)
            on_rest = (_mean(rated[g], folds, fold, held_out=True) for g in (best, now))
            figures.append((next(on_rest), next(on_rest)))
    best_of, now_of = (sum(values) / len(values) for values in zip(*figures, strict=True))
    counts = pd.Series(chosen).value_counts().head(5)
    print(f"held out: {best_of:.4f} with what the rest chooses, {now_of:.4f} with {now}")
    print("\n".join(f"  {settings} chosen {count} times" for settings, count in counts.items()))


def _mean(
    rated: dict[str, list[float]], folds: Mapping[str, Sequence[int]], fold: int, held_out: bool
) -> float:
    kept = {
        name: [v for v, f in zip(values, folds[name], strict=True) if (f == fold) == held_out]
        for name, values in rated.items()
    }
    return columns(kept)["mean"]


if __name__ == "__main__":
    main()
