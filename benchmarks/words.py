"""Measure accuracy and latency of the word index, at any number of messages.

    python -m benchmarks.words --dsn DSN [--copies 1,10] [--questions 500]

DSN is that of a database filled by the pipeline; the lexemes of its messages are used. Each further
copy is a year older and has another list name. In it, every lexeme of at most RARE messages is
renamed, so that the vocabulary grows as in real mail.

Accuracy is measured on the first copy: half of it is put at once, the rest in ten appends, each
followed by upkeep. Questions have rare, middle, common or mixed words of the corpus. The truth is
BM25 over all documents in memory. Latency is that of the index object that search uses.
"""

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.month import ListMonth
from mail_assets.vectors.filters import Filter
from mail_assets.words.index import Document, Phrase, Prefix, Term, WordIndex, WordQuery
from mail_assets.words.open import open_words


class Bm25:
    """BM25 with k1 = 1.2 and b = 0.75 over all documents, as arrays."""

    def __init__(self, documents: Sequence[Document]) -> None:
        lengths = np.array([len(one.lexemes) for one in documents], dtype=np.float64)
        self.damping = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        found: dict[str, list[tuple[int, int]]] = {}
        for place, one in enumerate(documents):
            for lexeme, count in Counter(one.lexemes).items():
                found.setdefault(lexeme, []).append((place, count))
        self.found = {lexeme: np.array(pairs) for lexeme, pairs in found.items()}
        self.having = Counter({lexeme: len(pairs) for lexeme, pairs in found.items()})

    def scores(self, terms: Iterable[Term]) -> npt.NDArray[np.float64]:
        """Return the score of every document."""
        scores = np.zeros(len(self.damping))
        for term in terms:
            places, counts = self.found[term.lexeme].T
            idf = np.log(1 + (len(scores) - len(places) + 0.5) / (len(places) + 0.5))
            scores[places] += term.share * idf * counts * 2.2 / (counts + self.damping[places])
        return scores


RARE = 20
BATCH = 20_000
YEAR = 31_536_000
TOP_K = 20
CANDIDATES = 300
ASKED = 50

DOCUMENTS = """
    select list, month, message_id, variant, extract(epoch from sent_at)::bigint,
           coalesce(from_email, ''), flags,
           (select coalesce(array_agg(lexeme order by position), '{}')
              from unnest(search) as u (lexeme, positions, weights),
                   unnest(positions) as position)
      from messages order by list, month, message_id, variant
"""


def main() -> None:
    """Measure; print tables in Markdown."""
    parser = argparse.ArgumentParser(description="Measure the word index.")
    parser.add_argument("--dsn", required=True, help="a database that the pipeline filled")
    parser.add_argument("--copies", default="1,10", help="numbers of copies of the messages: 1,10")
    parser.add_argument("--questions", type=int, default=500)
    arguments = parser.parse_args()
    real = read_documents(arguments.dsn)
    print(f"machine: {os.cpu_count()} cores; {len(real):,} messages\n")
    compare(real, arguments.questions)
    for copies in map(int, arguments.copies.split(",")):
        measure(real, copies)


def read_documents(dsn: str) -> list[Document]:
    """Return the messages of a database as documents."""
    with psycopg.connect(dsn) as connection:
        connection.read_only = True
        rows = connection.execute(DOCUMENTS).fetchall()
    return [
        Document(
            f"{name}|{month}|{message_id}#{variant}",
            ListMonth(name, month),
            message_id,
            variant,
            sent_at,
            sender,
            tuple(flags),
            tuple(lexemes),
        )
        for name, month, message_id, variant, sent_at, sender, flags, lexemes in rows
    ]


def compare(documents: Sequence[Document], count: int) -> None:
    """Print the overlap with the true top 20, and the errors of scores."""
    order = random.Random(1).sample(documents, len(documents))
    with tempfile.TemporaryDirectory() as folder:
        words = open_words(f"lance:{folder}", {})
        words.ensure()
        half, step = len(order) // 2, len(order) // 20 + 1
        words.put(order[:half])
        words.maintain()
        for start in range(half, len(order), step):
            words.put(order[start : start + step])
            words.maintain()
        truth, place = Bm25(order), {one.key: number for number, one in enumerate(order)}
        overlaps, errors = [], []
        for terms in islice(questions(truth.having), count):
            true = truth.scores(terms)
            best = [score for score in np.sort(true)[::-1][:TOP_K] if score > 0]
            found = words.search(WordQuery(terms), TOP_K)
            # Equal scores can be in another order: any document as good as the last counts.
            good = sum(true[place[match.key]] >= best[-1] * (1 - 1e-4) for match in found)
            overlaps.append(good / len(best))
            errors += [
                abs(match.score - score) / score for match, score in zip(found, best, strict=True)
            ]
    print(
        "| questions | overlap@20 mean | least | score error, mean | most |\n|---|---|---|---|---|"
    )
    print(
        f"| {count} | {np.mean(overlaps):.4f} | {min(overlaps):.2f} "
        f"| {np.mean(errors):.1e} | {max(errors):.1e} |\n"
    )


def questions(having: Counter[str]) -> Iterator[tuple[Term, ...]]:
    """Yield questions of 1 to 50 rare, middle, common or mixed words, without end."""
    chance = random.Random(2)
    ranked = [lexeme for lexeme, _ in having.most_common()]
    common, middle, rare = ranked[:500], ranked[500:5_000], ranked[5_000:]
    while True:
        for pool in (rare, middle, common, [*common, *middle, *rare]):
            picked = chance.sample(pool, min(len(pool), chance.choice([1, 2, 3, 5, 8, 20, 50])))
            yield tuple(Term(lexeme, chance.choice([1.0, 1.0, 2.0, 0.25])) for lexeme in picked)


def copied(documents: Sequence[Document], copies: int) -> Iterator[Document]:
    """Yield the documents of every copy."""
    having = Counter(lexeme for document in documents for lexeme in {*document.lexemes})
    yield from documents
    for copy in range(1, copies):
        for one in documents:
            name, year = f"{one.month.list_name}{copy}", int(one.month.year) - copy
            month = ListMonth(name, f"{max(1970, year)}{one.month.month[4:]}")
            yield one._replace(
                key=f"{name}|{one.key}",
                month=month,
                sent_at=max(0, one.sent_at - copy * YEAR),
                lexemes=tuple(
                    lexeme if having[lexeme] > RARE else f"{lexeme}~{copy}"
                    for lexeme in one.lexemes
                ),
            )


def measure(real: Sequence[Document], copies: int) -> None:
    """Fill an index, run all queries, print a table."""
    with tempfile.TemporaryDirectory() as folder:
        words = open_words(f"lance:{folder}", {})
        words.ensure()
        began, every = time.perf_counter(), copied(real, copies)
        while batch := [*islice(every, BATCH)]:
            words.put(batch)
        put = time.perf_counter() - began
        words.maintain(erase=True)
        built = time.perf_counter() - began - put
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        print(
            f"{words.count():,} messages: put {put:.1f} s, upkeep {built:.1f} s, "
            f"{size / 1e6:.0f} MB\n\n| asked for | p50 ms | p95 ms | hits |\n|---|---|---|---|"
        )
        for what, queries, where in workloads(real):
            report(words, what, queries, where)
        print()


def workloads(real: Sequence[Document]) -> Iterator[tuple[str, list[WordQuery], Filter | None]]:
    """Yield the name, the queries and the filter of each workload."""
    chance = random.Random(3)
    text = [lexeme for one in chance.sample(real, min(500, len(real))) for lexeme in one.lexemes]
    common = [lexeme for lexeme, _ in Counter(text).most_common(100)]

    def natural(length: int) -> list[WordQuery]:
        return [WordQuery(_terms(chance.choices(text, k=length))) for _ in range(ASKED)]

    for length in (1, 2, 3, 5, 10, 20, 50):
        yield f"{length} words", natural(length), None
    yield (
        "10 of the 100 most common",
        [WordQuery(_terms(chance.sample(common, 10))) for _ in range(ASKED)],
        None,
    )
    yield "500 words", natural(500)[:5], None
    middle = sorted(one.sent_at for one in real)[len(real) // 2]
    yield "5 words, a list", natural(5), {"list": real[0].month.list_name}
    yield "5 words, a year", natural(5), {"sent_at": {"$gte": middle, "$lt": middle + YEAR}}
    yield "5 words, a month", natural(5), {"sent_at": {"$gte": middle, "$lt": middle + YEAR // 12}}
    yield "5 words, a sender", natural(5), {"sender": real[0].sender}
    pairs = [_pair(chance, text) for _ in range(ASKED)]
    yield "both of 2 words", [WordQuery(_terms(x), tuple((y,) for y in x)) for x in pairs], None
    yield "a phrase of 2", [WordQuery(_terms(x), ((Phrase(x),),)) for x in pairs], None
    yield "both of 2 words, newest", [WordQuery((), tuple((y,) for y in x)) for x in pairs], None
    yield (
        "3 words without 1",
        [query._replace(excluded=(chance.choice(common),)) for query in natural(3)],
        None,
    )
    yield (
        "3 words and a prefix",
        [query._replace(required=((Prefix(chance.choice(text)[:4]),),)) for query in natural(3)],
        None,
    )
    yield "a prefix", [WordQuery((), ((Prefix(x[0][:4]),),)) for x in pairs], None


def _terms(lexemes: Iterable[str]) -> tuple[Term, ...]:
    return tuple(Term(lexeme) for lexeme in dict.fromkeys(lexemes))


def _pair(chance: random.Random, text: Sequence[str]) -> tuple[str, ...]:
    start = chance.randrange(len(text) - 1)
    return tuple(text[start : start + 2])


def report(words: WordIndex, what: str, queries: Sequence[WordQuery], where: Filter | None) -> None:
    """Run each query once; print a row."""
    words.search(queries[0], CANDIDATES, where)
    times, hits = [], []
    for query in queries:
        began = time.perf_counter()
        hits.append(len(words.search(query, CANDIDATES, where)))
        times.append((time.perf_counter() - began) * 1000)
    p50, p95 = np.percentile(times, [50, 95])
    print(f"| {what} | {p50:.1f} | {p95:.1f} | {np.mean(hits):.0f} |", flush=True)


if __name__ == "__main__":
    main()
