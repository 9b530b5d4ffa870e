"""Measure what it saves that the vectors of the last queries are kept.

    MAIL_HOME=... python -m benchmarks.kept_queries [--sources 12] [--rounds 6]

Of one home two searchers are asked in turn, in one process: one keeps the vectors of its queries,
the other encodes each again. Another page, a filter or facets ask for what was asked before; all
queries here were, so these are the most that it saves. Latencies are those that a response says.
"""

import argparse
from collections.abc import Sequence
from statistics import median
from unittest.mock import patch

import pandas as pd

from benchmarks.pipeline import machine
from benchmarks.search_queries import KINDS, read_sources
from mail_assets.search import live_index
from mail_assets.search.language.request import VECTOR_MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure what kept vectors of queries save.")
    parser.add_argument("--sources", type=int, default=12, help="messages that queries are made of")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    rounds: int = arguments.rounds
    settings = load_settings()
    with settings.database.connect("benchmark") as connection:
        sources = read_sources(connection, arguments.sources)
    queries = {kind: [KINDS[kind](one) for one in sources] for kind in ("5 words", "sentence")}
    with (
        open_searcher(settings.search) as keeping,
        patch.object(live_index, "KEPT_VECTORS", 0),
        open_searcher(settings.search) as encoding,
    ):
        rows = [
            {"query": kind, "mode": mode}
            | compare(keeping, encoding, [Request(query, mode=mode) for query in asked], rounds)
            for kind, asked in queries.items()
            for mode in VECTOR_MODES
        ]
    print(f"machine: {machine()}\n\nmedians in ms:\n")
    print(pd.DataFrame(rows).to_markdown(index=False))


def compare(
    keeping: Searcher, encoding: Searcher, requests: Sequence[Request], rounds: int
) -> dict[str, float]:
    """Return what each searcher takes for some requests, and the share that is left."""
    took: dict[Searcher, list[float]] = {keeping: [], encoding: []}
    for number in range(-1, rounds):  # what is asked first is not counted
        for request in requests:
            for searcher in (keeping, encoding) if number % 2 else (encoding, keeping):
                response = searcher.search(request)
                if number >= 0:
                    took[searcher].append(response.took_ms)
    kept, encoded = median(took[keeping]), median(took[encoding])
    return {"kept": round(kept, 1), "encoded": round(encoded, 1), "ratio": round(kept / encoded, 3)}


if __name__ == "__main__":
    main()
