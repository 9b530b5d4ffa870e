"""Measure the latency of search, by mode and by leg: one client, then eight at once.

    MAIL_HOME=... python -m benchmarks.search QUERIES.jsonl [--list LIST ...] [--clients 8]

The home must be filled. QUERIES are as `mail-assets search --queries` takes them; words that
are common everywhere are asked too. Each client has a searcher of its own, as a server's threads
have, and the model is shared. Latencies are those that a response says; the first pass warms up.
How good the hits are: `mail-assets evaluate`.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.pipeline import machine
from mail_assets.cli.searcher import open_configured_searcher
from mail_assets.evaluation.judged import read_queries
from mail_assets.search.request import MODES, Request
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.settings.environment import load_settings

COMMON = ("the patch", "file system call error", "how do I use this function with a file", "Re")
ROUNDS = 3


def main() -> None:
    """Measure, and print two tables in Markdown."""
    parser = argparse.ArgumentParser(description="Measure search.")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--list", dest="lists", action="append", default=[])
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    lists, clients = tuple(arguments.lists), arguments.clients
    queries = [one.text for _, one in read_queries(arguments.queries)]
    settings = load_settings()
    print(f"machine: {machine()}")
    print(f"data:    {', '.join(lists) or 'all lists'}; {len(queries)} + {len(COMMON)} queries")
    with ExitStack() as stack:
        searchers = [
            stack.enter_context(open_configured_searcher(settings)) for _ in range(clients)
        ]
        rows = []
        for mode in MODES:
            requests = [
                Request(query, mode=mode, lists=lists, explain=True)
                for query in [*queries, *COMMON]
            ]
            for searcher in searchers:
                ask(searcher, requests)
            alone = ask(searchers[0], requests * ROUNDS)
            rows.append(row(mode, 1, alone))
            rows.append(row(mode, clients, together(searchers, requests * ROUNDS)))
            if mode == "hybrid":
                legs = [one.explain["ms"] | {"all": one.took_ms} for one in alone if one.explain]
    print(pd.DataFrame(rows).to_markdown(index=False))
    print("\nwhere hybrid's time goes, one client (nearest runs beside fulltext), ms:\n")
    print(pd.DataFrame(legs).quantile([0.5, 0.95]).round(1).to_markdown())


def ask(searcher: Searcher, requests: list[Request]) -> list[Response]:
    """Ask one after the other."""
    return [searcher.search(request) for request in requests]


def together(searchers: list[Searcher], requests: list[Request]) -> list[Response]:
    """Ask the same of all searchers at once."""
    with ThreadPoolExecutor(len(searchers)) as pool:
        answers = pool.map(lambda one: ask(one, requests), searchers)
        return [response for of_one in answers for response in of_one]


def row(mode: str, clients: int, responses: list[Response]) -> dict[str, Any]:
    """Return a line of the table."""
    took = [one.took_ms for one in responses]
    p50, p95 = np.quantile(took, (0.5, 0.95))
    return {
        "mode": mode,
        "clients": clients,
        "searches": len(took),
        "p50 ms": round(float(p50), 1),
        "p95 ms": round(float(p95), 1),
        "max ms": max(took),
    }


if __name__ == "__main__":
    main()
