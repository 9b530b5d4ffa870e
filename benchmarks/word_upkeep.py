"""What upkeep of the index of words costs: after a fill, and after a thousand more messages.

    python -m benchmarks.word_upkeep [--messages 100000] [--month 400]

Months of random words are written as a backfill writes them, and the index catches up when that is
due. Then it is maintained, a thousand messages are added in five commits, and it is maintained
again. Printed are seconds, those of the processor, and the most memory of the process (Linux).
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.contenders import peak_mb
from mail_assets.month import ListMonth
from mail_assets.words.index import Document, WordIndex
from mail_assets.words.open import open_words

#: Words of a message, and of the language: a million messages of mail have 128 each, and 820,000.
WORDS, VOCABULARY = 128, 800_000
MORE, COMMITS = 1_000, 5
#: Months of a list; then the next begins.
LIST = 300


def make_months(messages: int, size: int, first: int = 0) -> Iterator[list[Document]]:
    """Yield so many messages in months of one size, numbered from `first` on."""
    chance = np.random.default_rng(first)
    for start in range(first, first + messages, size):
        years, place = divmod(start // size % LIST, 12)
        month = ListMonth(f"list-{start // size // LIST}", f"{1990 + years}-{place + 1:02d}")
        # Zipf's law: ranks are spread evenly by their logarithm
        ranks = np.exp(chance.random((size, WORDS)) * np.log(VOCABULARY)).astype(np.int64)
        yield [_document(month, start + each, words) for each, words in enumerate(ranks.tolist())]


def _document(month: ListMonth, number: int, words: Sequence[int]) -> Document:
    return Document(
        key=f"{month.key}|{number:08d}",
        month=month,
        message_id=f"<{number}@example.org>",
        variant=0,
        sent_at=1_000 * number,
        sender=f"sender-{number % 1000}@example.org",
        flags=(),
        lexemes=tuple(f"w{word}" for word in words),
    )


def measure(what: str, options: argparse.Namespace, work: Callable[[], object]) -> None:
    """Run some work, and print what it took."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    began, before = time.perf_counter(), time.process_time()
    work()
    seconds, processor = time.perf_counter() - began, time.process_time() - before
    figures = f"{options.messages:,} | {seconds:.1f} | {processor:.1f} | {peak_mb():.0f}"
    print(f"| {what} | {figures} |", flush=True)


def fill(index: WordIndex, months: Iterator[list[Document]]) -> None:
    """Write months, and let the index catch up when that is due."""
    for documents in months:
        index.insert(documents)
        if index.needs_upkeep():
            index.catch_up()


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--month", type=int, default=400, help="messages of a month")
    options = parser.parse_args()
    print("| what | messages | seconds | processor | most memory, MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        index = open_words(f"lance:{folder}")
        index.ensure()
        measure("fill", options, lambda: fill(index, make_months(options.messages, options.month)))
        measure("upkeep in the end", options, index.maintain)
        for documents in make_months(MORE, MORE // COMMITS, options.messages):
            index.insert(documents)
        measure("upkeep after 1,000 more", options, index.maintain)


if __name__ == "__main__":
    main()
