"""Compare ways to fuse two rankings, on judged sets: tables of docs/search-experiments.md.

    MAIL_HOME=... python -m benchmarks.mixes record OUT [KIND:]LIST=FOLDER ...
    python -m benchmarks.mixes compare OUT
    python -m benchmarks.mixes validate OUT

`record` asks every query in hybrid and keeps what the legs gave to the fusion; the others fuse that
again, in other ways, without any index. A FOLDER is a judged set (mail_assets/evaluation/judged.py)
that is asked of LIST, or of every list ("*=FOLDER"). KIND is the column, else the folder's name up
to its first dash; the queries of a kind count the same, and the kinds do in the mean. Sets with
several relevant messages a query are rated by nDCG@10, those with one by MRR. `validate` chooses
the settings of fusion.py on four fifths of the queries and rates them on the fifth, 10 times.
"""

import argparse
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

from mail_assets.evaluation.judged import JudgedQuery, read_judged_set
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.evaluation.scores import count_threads, ndcg, reciprocal_rank
from mail_assets.search import fusion
from mail_assets.search.fulltext import HYBRID_MESSAGES
from mail_assets.search.fusion import Mix
from mail_assets.search.language.request import Request
from mail_assets.search.matches import Candidate, Depths
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.settings.settings import load_settings
from mail_assets.text.identifiers import find_identifiers

RRF_K = 60  # Cormack, Clarke, Buettcher 2009
FOLDS, REPEATS = 5, 10
DEPTH = 50
#: Of fusion.py.
SETTINGS = ("SHORT_QUESTION", "FIRST_WEIGHT", "THREAD_WEIGHT")
GRID = [*product((8, 12, 16), (0.0, 0.1, 0.2), (2.0, 4.0))]


class Answered(NamedTuple):
    """What the legs gave to the fusion for a query; `question` is what weigh_legs is told of it."""

    kind: str
    one: JudgedQuery
    semantic: list[Candidate]
    fulltext: list[Candidate]
    members: list[Candidate]
    question: tuple[float, int, int]


Way = Callable[[Answered], list[Candidate]]


def main() -> None:
    """Record what the legs find, or fuse it again."""
    parser = argparse.ArgumentParser(description="Compare ways to fuse two rankings.")
    parser.add_argument("what", choices=("record", "compare", "validate"))
    parser.add_argument("file", type=Path)
    parser.add_argument("sets", nargs="*", metavar="[KIND:]LIST=FOLDER")
    arguments = parser.parse_args()
    if arguments.what == "record":
        with open_searcher(load_settings().search) as searcher:
            found = [a for written in arguments.sets for a in record_set(searcher, written)]
        arguments.file.write_bytes(pickle.dumps(found))
        print(f"{len(found)} queries")
        return
    found = pickle.loads(arguments.file.read_bytes())  # written by record
    (compare if arguments.what == "compare" else validate)(found)


def record_set(searcher: Searcher, written: str) -> list[Answered]:
    """Ask every query of a set in hybrid and keep what reaches the fusion."""
    kind, lists, folder = split_name(written)
    return [record(searcher, kind, one, lists) for one in read_judged_set(folder)]


def split_name(written: str) -> tuple[str, tuple[str, ...], Path]:
    """Return the kind of a set, the lists that it is asked of, and its folder."""
    where, _, path = written.rpartition("=")
    kind, _, name = where.rpartition(":")
    folder = Path(path)
    return kind or folder.name.partition("-")[0], () if name == "*" else (name,), folder


def record(searcher: Searcher, kind: str, one: JudgedQuery, lists: tuple[str, ...]) -> Answered:
    """Ask one query and keep what reaches the fusion."""
    request = Request(one.text, lists=lists, without=one.citing)
    depths = Depths(HYBRID_MESSAGES, HYBRID_CHUNKS)
    found = searcher.retriever.rank_legs(searcher.look_up(request), depths, threads=True)
    question = (found.covered, len(one.text.split()), len(find_identifiers(one.text)))
    return Answered(kind, one, found.semantic, found.fulltext, found.members, question)


def compare(found: list[Answered]) -> None:
    """Print a row for each way: each kind's figure, their mean, and threads among the first 10."""
    rows = {}
    for name, way in WAYS.items():
        rated = rate(way, found)
        means = {kind: float(np.mean(values)) for kind, values in rated.items()}
        threads = [
            count_threads([c.thread_key for c in way(a)], 10)
            for a in found
            if a.kind in ("topics", "citations")
        ]
        rows[name] = means | {
            "mean": float(np.mean([*means.values()])),
            "threads@10": float(np.mean(threads or [0])),
        }
    print(pd.DataFrame(rows).T.round(3).to_markdown())
    print("\nas it is, with intervals:")
    for kind, values in rate(as_it_is, found).items():
        one = estimate_mean(values)
        print(f"  {kind} ({len(values)}): {one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]")


def as_it_is(a: Answered) -> list[Candidate]:
    """Fuse as search does."""
    fused = fusion.fuse(a.semantic, a.fulltext, fusion.weigh_legs(*a.question))
    return fusion.add_thread_messages(fused, a.members)


def mixed(words: float, threads: float) -> Way:
    """Return a fusion that does not look at the question."""
    return lambda a: fusion.fuse(a.semantic, a.fulltext, Mix(1 - words, words, threads))


def without_threads(a: Answered) -> list[Candidate]:
    """Fuse as search does, but for the evidence of threads."""
    mix = fusion.weigh_legs(*a.question)
    return fusion.fuse(a.semantic, a.fulltext, replace(mix, threads=0.0))


def reciprocal_ranks(a: Answered) -> list[Candidate]:
    """Fuse by 1 / (RRF_K + rank)."""
    scores: dict[str, float] = {}
    known = {one.message_id: one for one in (*a.semantic, *a.fulltext)}
    for leg in (a.semantic, a.fulltext):
        for rank, one in enumerate(leg, 1):
            scores[one.message_id] = scores.get(one.message_id, 0.0) + 1 / (RRF_K + rank)
    return [known[i] for i in sorted(scores, key=lambda i: (-scores[i], i))]


WAYS: dict[str, Way] = {
    "words": lambda a: a.fulltext,
    "meaning": lambda a: a.semantic,
    "reciprocal ranks (k = 60)": reciprocal_ranks,
    **{f"words {w}": mixed(w, 0.0) for w in (0.3, 0.5, 0.7)},
    **{f"words {w}, threads 3": mixed(w, 3.0) for w in (0.3, 0.5, 0.7)},
    "by the question, without threads": without_threads,
    "**by the question**": as_it_is,
}


def rate(way: Way, found: Iterable[Answered]) -> dict[str, list[float]]:
    """Return a figure for each query, by kind."""
    rated: dict[str, list[float]] = {}
    known = {a.kind for a in found} - {a.kind for a in found if len(a.one.relevant) > 1}
    for a in found:
        ranking = [c.message_id for c in way(a)]
        relevant = a.one.relevant
        by_rank = reciprocal_rank(ranking[:DEPTH], relevant)
        rated.setdefault(a.kind, []).append(
            by_rank if a.kind in known else ndcg(ranking, relevant, 10)
        )
    return rated


def validate(found: list[Answered]) -> None:
    """Choose the settings on four fifths of the queries, rate them on the last."""
    rated = {}
    for settings in GRID:
        with ExitStack() as stack:
            for name, value in zip(SETTINGS, settings, strict=True):
                stack.enter_context(patch.object(fusion, name, value))
            rated[settings] = rate(as_it_is, found)
    now = fusion.SHORT_QUESTION, fusion.FIRST_WEIGHT, fusion.THREAD_WEIGHT
    table = {str(s): {k: np.mean(v) for k, v in r.items()} for s, r in rated.items()}
    frame = pd.DataFrame(table).T
    frame["mean"] = frame.mean(axis=1)
    print(", ".join(SETTINGS))
    print(frame.sort_values("mean", ascending=False).round(3).to_markdown())
    chosen: list[str] = []
    figures: list[tuple[float, float]] = []
    for repeat, fold in product(range(REPEATS), range(FOLDS)):
        chance = random.Random(repeat)
        folds = {k: [chance.randrange(FOLDS) for _ in v] for k, v in rated[now].items()}
        best = max(GRID, key=lambda g: _mean(rated[g], folds, fold, held_out=False))
        chosen.append(str(best))
        on_rest = [_mean(rated[g], folds, fold, held_out=True) for g in (best, now)]
        figures.append((on_rest[0], on_rest[1]))
    best_of, now_of = np.mean(figures, axis=0)
    print(f"\nheld out: {best_of:.4f} with what the rest chooses, {now_of:.4f} with {now}")
    for name, count in Counter(chosen).most_common(5):
        print(f"  {name} chosen {count} times")


def _mean(
    rated: dict[str, list[float]], folds: dict[str, list[int]], fold: int, held_out: bool
) -> float:
    """Return the mean over the kinds of the queries that are in a fold, or that are not."""
    means = [
        np.mean([v for v, f in zip(values, folds[kind], strict=True) if (f == fold) == held_out])
        for kind, values in rated.items()
    ]
    return float(np.mean(means))


if __name__ == "__main__":
    main()
