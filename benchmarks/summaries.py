"""Score extractive summaries against sentences marked by hand, for docs/benchmarks.md.

    python -m benchmarks.summaries ARCHIVES [--models FOLDER]
    MAIL_HOME=... python -m benchmarks.summaries --all LIST

ARCHIVES is the folder of the lists linux-man-full and pgsql-todo. The tables have F1 of sentences
and ROUGE-2 with intervals of 95 % (bootstrap over threads): for the extractor, for three baselines
with the same number of sentences, and for the extractor without each of its signals. `--models`, a
folder for files of models, adds centrality by sentence vectors instead of shared words. `--all`
summarizes every thread of a list of the database instead, and prints seconds and memory.
"""

import argparse
import random
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from mail_assets.encoding.open import open_encoder
from mail_assets.settings.settings import load_settings
from mail_assets.summaries.extractive import (
    WEIGHTS,
    Candidate,
    Weights,
    count_sentences,
    find_candidates,
    summarize,
)
from mail_assets.summaries.summary import MessageText
from mail_assets.tables.thread_summaries import read_messages as read_threads
from mail_assets_tests.summaries.marked_threads import (
    MarkedThread,
    Piece,
    make_piece,
    read_marked_threads,
    read_messages,
    score_f1,
    score_rouge_2,
)

#: Number of random baselines, and of bootstrap samples.
DRAWS, RESAMPLED = 50, 10_000
#: Threads that are read in one query.
PORTION = 200

THREADS = "select distinct thread_id from threads join messages using (message_id) where list = %s"

Read = tuple[MarkedThread, Sequence[MessageText]]
Choose = Callable[[Sequence[MessageText]], list[Piece]]
#: F1 and ROUGE-2 of each thread.
Scores = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Score extractive summaries.")
    parser.add_argument("archives", type=Path, nargs="?", help="the folder of the archives")
    parser.add_argument("--models", type=Path, help="a folder for files of models")
    parser.add_argument("--all", metavar="LIST", help="time all threads of a list of MAIL_HOME")
    arguments = parser.parse_args()
    if arguments.all:
        summarize_all(arguments.all)
        return
    threads = [(one, read_messages(arguments.archives, one)) for one in read_marked_threads()]
    print_baselines(threads)
    print_signals(threads, arguments.models)


def print_baselines(threads: Sequence[Read]) -> None:
    """Print the scores of the extractor and of the baselines, by group of threads."""
    groups: dict[str, Callable[[MarkedThread], bool]] = {
        "fitted half": lambda one: not one.held_back,
        "held-back half": lambda one: one.held_back,
        "linux-man": lambda one: one.list_name == "linux-man-full",
        "pgsql-todo": lambda one: one.list_name == "pgsql-todo",
        "all": lambda one: True,
    }
    for name, belongs in groups.items():
        group = [read for read in threads if belongs(read[0])]
        own = score_all(group, extract)
        print(f"\n{name}, {len(group)} threads\n\n| | F1 | ROUGE-2 | extractive is better by |")
        print("|---|---|---|---|")
        print(f"| extractive | {show(own[:, 0])} | {show(own[:, 1])} | |")
        for other, choose in (("first of each message", first_of_each), ("first", first)):
            scores = score_all(group, choose)
            gain = f"{show(own[:, 0] - scores[:, 0])}; {show(own[:, 1] - scores[:, 1])}"
            print(f"| {other} | {show(scores[:, 0])} | {show(scores[:, 1])} | {gain} |")
        scores = np.mean([score_all(group, draw(seed)) for seed in range(DRAWS)], axis=0)
        gain = f"{show(own[:, 0] - scores[:, 0])}; {show(own[:, 1] - scores[:, 1])}"
        print(f"| random | {show(scores[:, 0])} | {show(scores[:, 1])} | {gain} |")


def print_signals(threads: Sequence[Read], models: Path | None) -> None:
    """Print the scores without each signal, and with centrality by vectors."""
    halves = [[read for read in threads if read[0].held_back == held] for held in (False, True)]
    print("\n| | fitted: F1 | ROUGE-2 | held back: F1 | ROUGE-2 |\n|---|---|---|---|---|")
    variants = {"all signals": WEIGHTS}
    for signal in fields(WEIGHTS):
        variants[f"without {signal.name}"] = replace(WEIGHTS, **{signal.name: 0.0})
    for name, weights in variants.items():
        print_row(name, halves, lambda messages, w=weights: extract(messages, w))  # type: ignore[misc]
    if models is None:
        return
    for precision in ("static", "int8"):
        by_vectors = measure_by_vectors(precision, models)
        with patch("mail_assets.summaries.extractive.measure_centrality", by_vectors):
            print_row(f"centrality by {precision} vectors", halves, extract)


def print_row(name: str, halves: Sequence[Sequence[Read]], choose: Choose) -> None:
    """Print a row with the mean scores of both halves."""
    means = [value for half in halves for value in score_all(half, choose).mean(axis=0)]
    print(f"| {name} | {' | '.join(f'{value:.3f}' for value in means)} |")


def score_all(threads: Sequence[Read], choose: Choose) -> Scores:
    """Return F1 and ROUGE-2 of each thread."""
    rows = []
    for thread, messages in threads:
        chosen = choose(messages)
        f1 = score_f1(chosen, thread.marks)
        rows.append((f1, score_rouge_2(messages, chosen, thread.marks)))
    return np.array(rows)


def show(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """Return a mean and its interval of 95 % (bootstrap over threads)."""
    chance = np.random.default_rng(16)
    means = values[chance.integers(0, len(values), (RESAMPLED, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def extract(messages: Sequence[MessageText], weights: Weights = WEIGHTS) -> list[Piece]:
    """Choose the sentences of the extractor."""
    places = {message.message_id: i for i, message in enumerate(messages)}
    return [
        make_piece(messages, places[one.message_id], (one.start, one.end), one.part)
        for one in summarize(messages, weights).sentences
    ]


def first(messages: Sequence[MessageText]) -> list[Piece]:
    """Choose the thread's first sentences."""
    return take(messages, find_candidates(messages))


def first_of_each(messages: Sequence[MessageText]) -> list[Piece]:
    """Choose the first sentence of each message, then the second of each."""
    return take(messages, sorted(find_candidates(messages), key=lambda one: one.index))


def draw(seed: int) -> Choose:
    """Return a function that chooses sentences at random."""

    def choose(messages: Sequence[MessageText]) -> list[Piece]:
        candidates = find_candidates(messages)
        return take(messages, random.Random(seed).sample(candidates, len(candidates)))

    return choose


def take(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> list[Piece]:
    """Return the first candidates, as many as a summary of the thread has."""
    return [
        make_piece(messages, one.message, (one.start, one.end), "discussion")
        for one in candidates[: count_sentences(len(messages))]
    ]


def measure_by_vectors(
    precision: str, models: Path
) -> Callable[[Sequence[MessageText], Sequence[Candidate]], list[float]]:
    """Return a function that measures centrality by the vectors of a model.

    Centrality is the cosine of a sentence's vector to the sum of the messages' vectors. The vector
    of a message is the normalized mean of its sentences.
    """
    encoder = open_encoder("all-minilm-l6-v2", precision, models)

    def measure(_: Sequence[MessageText], candidates: Sequence[Candidate]) -> list[float]:
        if not candidates:
            return []
        vectors = encoder.encode_documents([" ".join(one.text.split()) for one in candidates])
        numbers = np.array([one.message for one in candidates])
        means = [vectors[numbers == number].mean(axis=0) for number in np.unique(numbers)]
        total = sum(mean / np.linalg.norm(mean) for mean in means)
        cosines = vectors @ total
        return [float(value) for value in cosines / max(cosines.max(), 1e-9)]

    return measure


def summarize_all(list_name: str) -> None:
    """Summarize every thread of a list, and print seconds and memory."""
    spent, threads, messages, sentences = 0.0, 0, 0, 0
    with load_settings().database.connect("summaries") as connection:
        ids = [row[0] for row in connection.execute(THREADS, (list_name,))]
        began = time.perf_counter()
        for start in range(0, len(ids), PORTION):
            found = read_threads(connection, ids[start : start + PORTION])
            at = time.process_time()
            for thread in found.values():
                sentences += len(summarize(thread).sentences)
            spent += time.process_time() - at
            threads += len(found)
            messages += sum(map(len, found.values()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{messages:,} messages, {threads:,} threads, {sentences:,} sentences: "
        f"{spent:.1f} s of processor time, {time.perf_counter() - began:.1f} s with reading, "
        f"peak memory {peak} MB"
    )


if __name__ == "__main__":
    main()
