"""Measure the latency of searches by kind of query and mode, with one client and several.

    MAIL_HOME=... python -m benchmarks.search [--sources 12] [--clients 8]

The home must be filled (benchmarks.corpus makes big archives). Each query is made of a chunk,
chosen by a seeded random key, and of its message: so words are as frequent as in mail. The first
search for a query counts as cold: the query is not encoded yet, and its words and pages may not
have been read since the server started. It is followed by ROUNDS warm ones. Latencies are those
that the responses report. With several clients, the service of `serve` searches, and the waiting
time of each client counts.

To measure the quality of hits, use `mail-assets evaluate`.
"""

import argparse
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, LiteralString, NamedTuple

import numpy as np
import pandas as pd
import psycopg

from benchmarks.pipeline import machine
from mail_assets.cli.serve import open_documents
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings
from mail_assets.web.searchers import SearchService, spare_from_collection

SEED = 13
_WORD = re.compile(r"[^\W\d_]{3,}")
#: Stop words of English full-text search.
STOP_WORDS = "the of and to in is that it for was on are as with his they at be this from have"

#: Messages of the first chunk at or after each random key.
SOURCES: LiteralString = """
select m.list, m.message_id, m.sent_at::date::text, m.from_email, m.from_name, m.subject_base,
       coalesce((m.recipients || m.cc)[1], ''), coalesce(m.attachments -> 0 ->> 'name', ''), c.text
  from unnest(%s::text[]) as k (key)
 cross join lateral (select * from chunks where key >= k.key order by key limit 1) c
  join messages m using (list, month, message_id, variant)
"""


class Source(NamedTuple):
    """A message and the text of one of its chunks."""

    list_name: str
    message_id: str
    day: str
    address: str
    name: str
    subject: str
    receiver: str
    file: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words of the text."""
        return _WORD.findall(self.text)


def read_sources(connection: psycopg.Connection, count: int) -> list[Source]:
    """Return up to `count` messages; the same mail gives the same messages."""
    chance = random.Random(SEED)
    keys = [f"{chance.getrandbits(128):032x}" for _ in range(4 * count)]
    rows = [Source(*row) for row in connection.execute(SOURCES, [keys])]
    return [one for one in rows if len(one.words) >= 5][:count]


def _some(one: Source, count: int) -> str:
    """Return `count` words of a text, longest first; they repeat if it has fewer."""
    words = sorted(dict.fromkeys(one.words), key=len, reverse=True)
    return " ".join((words * count)[:count])


def _sentence(one: Source) -> str:
    return " ".join(one.text.split()[:14])


def _pair(one: Source) -> str:
    return " ".join(one.words[2:4])


def _month(one: Source) -> str:
    return f"month:{one.day[:7]}"


def _first_word(text: str) -> str:
    found = _WORD.search(text)
    return found[0] if found else "patch"


#: Kind of query -> function that makes it from a message.
KINDS: dict[str, Callable[[Source], str]] = {
    "1 word": lambda one: _some(one, 1),
    "5 words": lambda one: _some(one, 5),
    "50 words": lambda one: _some(one, 50),
    "sentence": _sentence,
    "phrase": lambda one: f'"{_pair(one)}"',
    "phrase and words": lambda one: f'"{_pair(one)}" {_some(one, 2)}',
    "prefix": lambda one: f"{_some(one, 1)[:4]}*",
    "exclusion": lambda one: f"{_some(one, 2)} -{one.words[0]}",
    "or": lambda one: f"{_some(one, 1)} or {one.words[0]}",
    "newest first": lambda one: f"{one.words[0]} sort:date",
    "list:": lambda one: f"{_some(one, 5)} list:{one.list_name}",
    "month: (of all, 1 in 100 or fewer)": lambda one: f"{_some(one, 5)} {_month(one)}",
    "after: (a day of any year)": lambda one: f"{_some(one, 5)} after:{one.day}",
    "list: after:": lambda one: f"{_some(one, 5)} list:{one.list_name} after:{one.day}",
    "from: address": lambda one: f'{_some(one, 5)} from:"{one.address}"',
    "from: part": lambda one: f"{_some(one, 5)} from:{_first_word(one.name)}",
    "to:": lambda one: f"{_some(one, 5)} to:{_first_word(one.receiver)}",
    "subject:": lambda one: f"{_some(one, 5)} subject:{_first_word(one.subject)}",
    "file:": lambda one: f"{_some(one, 5)} file:{_first_word(one.file)}",
    "thread:": lambda one: f'{_some(one, 5)} thread:"{one.message_id}"',
    "has:patch": lambda one: f"{_some(one, 5)} has:patch",
}
#: Hostile queries, which must not take long.
HOSTILE: dict[str, str] = {
    "500 terms": " ".join(f"term{n}" if n % 2 else STOP_WORDS.split()[n % 22] for n in range(340)),
    "2,000 characters": ("the patch file system call " * 80)[:2_000],
    "stop words": STOP_WORDS,
    "operators": '- -- "" ( ) or OR -( ) * : \\ " - or ',
}


ROUNDS = 3
PARTS = ("words", "nearest", "stored", "page")
SIZES = """
select (select count(*) from messages), (select count(*) from chunks),
       (select count(distinct list) from partitions where asset = 'messages')
"""


def main() -> None:
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description="Measure search.")
    parser.add_argument("--sources", type=int, default=12, help="messages to make queries of")
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
        print("p50 / p95 in ms, one client; cold: hybrid, the first search for each query:\n")
        print(pd.DataFrame(rows).to_markdown(index=False))
        print("\nparts of hybrid, p50 / p95 in ms (nearest and words run at the same time):\n")
        print(pd.DataFrame(parts).to_markdown(index=False))
    with open_documents(settings, settings.web_processes) as documents:
        documents.service.warm_up()
        for kind in ("5 words", "list:"):
            print(
                f"\n{kind}, {arguments.clients} clients at once, "
                f"{settings.web_processes} search processes as in `serve`:\n"
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
    """Return a row of the table of latencies, and one of the table of hybrid's parts."""
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
    """Search for the requests one after the other."""
    return [searcher.search(request) for request in requests]


def ask_together(
    service: SearchService, clients: int, mode: str, queries: Sequence[str]
) -> dict[str, Any]:
    """Run the same searches from several clients at once; return a row of their waiting times."""
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
