"""Fit the weights of extractive summaries to a part of the marked threads, and score the rest.

    python -m benchmarks.summary_weights ARCHIVES

Tries half, once and twice the weights of position, length and centrality, all 27 ways, on the half
of the marked threads that is not held back. Prints the mean of F1 and ROUGE-2 of threads whose
list, or which themselves, had no part in the choice, beside that of the weights as they are.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.summaries import extract, score_all
from mail_assets.summaries.extractive import WEIGHTS
from mail_assets_tests.summaries.marked_threads import read_marked_threads, read_messages

FACTORS = (0.5, 1.0, 2.0)


def main() -> None:
    """Score every choice of weights, and print a table."""
    parser = argparse.ArgumentParser(description="Fit weights to a part, score the rest.")
    parser.add_argument("archives", type=Path)
    archives = parser.parse_args().archives
    marked = [one for one in read_marked_threads() if not one.held_back]
    threads = [(one, read_messages(archives, one)) for one in marked]
    choices = [*itertools.product(FACTORS, repeat=3)]
    scores = []
    for position, length, centrality in choices:
        weights = replace(
            WEIGHTS,
            position=position * WEIGHTS.position,
            length=length * WEIGHTS.length,
            centrality=centrality * WEIGHTS.centrality,
        )
        found = score_all(threads, lambda messages, w=weights: extract(messages, w))  # type: ignore[misc]
        scores.append(found.mean(axis=1))
    table = np.array(scores)
    own = table[choices.index((1.0, 1.0, 1.0))]
    lists = np.array([one.list_name for one in marked])
    print("| scored | weights as they are | fitted to the rest | best of 27, knowing it |")
    print("|---|---|---|---|")
    for name in sorted({*lists}):
        rest = table[:, lists != name].mean(axis=1).argmax()
        here = table[:, lists == name]
        best = here.mean(axis=1).max()
        mean = own[lists == name].mean()
        print(f"| {name} | {mean:.3f} | {here[rest].mean():.3f} | {best:.3f} |")
    each = np.arange(len(marked))
    left_out = [table[table[:, each != i].mean(axis=1).argmax(), i] for i in each]
    best = table.mean(axis=1).max()
    print(f"| each thread | {own.mean():.3f} | {np.mean(left_out):.3f} | {best:.3f} |")


if __name__ == "__main__":
    main()
