"""Measure how long searches take, by kind of query and mode, alone and by several clients.

    MAIL_HOME=... python -m benchmarks.search [--sources 12] [--clients 8]

The home must be filled (benchmarks/enlarge.py and benchmarks/corpus.py make big ones); the queries
are made of its mail (search_queries.py). Of each kind and mode every query is asked ROUNDS times
after a first time, which is counted as cold: it is not encoded yet, and its words and pages may not
have been read since the server started. Latencies are those that a response says. Each client has a
searcher of its own, as a server's threads have; model and indexes are shared. How good hits are:
`mail-assets evaluate`.
"""

import argparse
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.pipeline import machine
from benchmarks.search_queries import HOSTILE, KINDS, read_sources
from mail_assets.cli.serve import open_documents
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings
from mail_assets.web.searchers import SearchService, spare_from_collection

ROUNDS = 3
PARTS = ("words", "nearest", "stored", "page")
SIZES = """
select (select count(*) from messages), (select count(*) from chunks),
       (select count(distinct list) from partitions where asset = 'messages')
"""


def main() -> None:
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description="Measure search.")
    parser.add_argument("--sources", type=int, default=12, help="messages that queries are made of")
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    settings = load_settings()
    with settings.database.connect("benchmark") as connection:
        sizes = connection.execute(SIZES).fetchone()
        sources = read_sources(connection, arguments.sources)
    print(f"machine: {machine()}; load average {os.getloadavg()[0]:.1f} at the start")
    print("data: {:,} messages, {:,} chunks, {} lists\n".format(*sizes or (0, 0, 0)))
    kinds = {kind: [make(one) for one in sources] for kind, make in KINDS.items()}
    kinds |= {kind: [query] for kind, query in HOSTILE.items()}
    with open_searcher(settings.search) as searcher:
        searcher.search(Request("warm up"))
        spare_from_collection()  # as `serve` does
        rows, parts = zip(*(measure(searcher, *kind) for kind in kinds.items()), strict=True)
        print("p50 / p95 in ms, one client; cold: hybrid, the first time that a query is asked:\n")
        print(pd.DataFrame(rows).to_markdown(index=False))
        print("\nwhere hybrid's time goes, p50 / p95 in ms (nearest runs beside words):\n")
        print(pd.DataFrame(parts).to_markdown(index=False))
    with open_documents(settings, settings.web_processes) as documents:
        documents.service.warm_up()
        for kind in ("5 words", "list:"):
            print(
                f"\n{kind}, {arguments.clients} clients at once, searched by "
                f"{settings.web_processes} processes as `serve` does:\n"
            )
            together = [
                ask_together(documents.service, arguments.clients, mode, kinds[kind])
                for mode in MODES
            ]
            print(pd.DataFrame(together).to_markdown(index=False))
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


def measure(
    searcher: Searcher, kind: str, queries: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return a line of the table of latencies and one of the parts of hybrid."""
    row: dict[str, str] = {"query": kind}
    parts: dict[str, str] = {"query": kind}
    for mode in ("hybrid", *(mode for mode in MODES if mode != "hybrid")):
        requests = [Request(query, mode=mode, explain=True) for query in queries]
        cold = ask(searcher, requests)
        warm = ask(searcher, requests * ROUNDS)
        row[mode] = quantiles(one.took_ms for one in warm)
        if mode == "hybrid":
            row["cold"] = quantiles(one.took_ms for one in cold)
            times = [(one.explain or {}).get("ms", {}) for one in warm]
            parts |= {name: quantiles(one.get(name, 0.0) for one in times) for name in PARTS}
    print(f"  {row}", flush=True)
    return row, parts


def ask(searcher: Searcher, requests: Iterable[Request]) -> list[Response]:
    """Ask one after the other."""
    return [searcher.search(request) for request in requests]


def ask_together(
    service: SearchService, clients: int, mode: str, queries: Sequence[str]
) -> dict[str, Any]:
    """Have clients ask the same at once, and return a line of the table; their waits count."""
    requests = [Request(query, mode=mode) for query in queries] * ROUNDS

    def wait_for_each(_client: int) -> list[float]:
        moments = [time.perf_counter()]
        for request in requests:
            service.search(request)
            moments.append(time.perf_counter())
        return [1_000 * (after - before) for before, after in pairwise(moments)]

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        took = [*chain.from_iterable(pool.map(wait_for_each, range(clients)))]
    seconds = time.perf_counter() - began
    return {
        "mode": mode,
        "queries": len(took),
        "p50 / p95 ms": quantiles(took),
        "queries/s": round(len(took) / seconds, 1),
    }


def quantiles(values: Iterable[float]) -> str:
    """Return median and 95th percentile."""
    p50, p95 = np.quantile([*values], (0.5, 0.95))
    return f"{p50:.0f} / {p95:.0f}"


if __name__ == "__main__":
    main()
