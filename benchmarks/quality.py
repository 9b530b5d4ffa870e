"""Measure search on judged sets of several kinds: the table of docs/benchmarks.md.

    MAIL_HOME=... python -m benchmarks.quality [KIND:]LIST=FOLDER ... [--keep FILE] [--less FILE]
    MAIL_HOME=... python -m benchmarks.quality --pages LIST=FOLDER ...
    MAIL_VECTORS=pgvector: python -m benchmarks.quality --sql LIST=FOLDER ...

A FOLDER is a judged set (mail_assets/evaluation/judged.py). Its queries search LIST, or every list
("*=FOLDER"). KIND groups the sets in the tables; the default is the folder's name up to its first
dash. All queries of a kind have the same weight. They are searched and measured as in
`mail-assets evaluate`, message by message. `--keep` writes the figures of each query; `--less`
prints the differences to the figures that another run kept. `--index NAME` searches an index that
is not live.

`--pages` compares two kinds of hybrid pages: ten messages, and ten conversations, each with its
first message and its hits. A page is judged twice: it shows a relevant message; it shows the thread
of one.

`--sql` measures the SQL functions, which must be installed. Messages that contain a question are
deleted before it is asked, in a transaction that is rolled back: do not use a database that is in
use, but a copy.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psycopg

from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.evaluation.judged import (
    JudgedQuery,
    count_threads,
    ndcg,
    read_set,
    reciprocal_rank,
    score_queries,
    success,
)
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.search.language.request import MODES, Group, Mode, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings
from mail_assets.tables.indexes import list_indexes

THREADS = "select thread_id from threads where message_id = any(%s)"
# With 30, search reads 100 chunks, as for a page of 10.
FUNCTIONS = {
    "fulltext": "search_fulltext(%(text)s, 30, array[%(list)s])",
    "semantic": "search_semantic(%(vector)s::halfvec, 30, in_lists => array[%(list)s])",
    "hybrid": "search_hybrid(%(text)s, %(vector)s::halfvec, 30, in_lists => array[%(list)s])",
}

#: Kind of a set, the lists that it searches, and its folder.
NamedSet = tuple[str, tuple[str, ...], Path]


class Figure(NamedTuple):
    """Figures of a query in a mode; `value` is nDCG@10, or MRR in sets with one answer each."""

    kind: str
    query: str
    mode: str
    value: float
    success: float
    threads: float
    took_ms: float


def main() -> None:
    """Ask every set in every mode and print the tables."""
    parser = argparse.ArgumentParser(description="Measure search on judged sets by kind.")
    parser.add_argument("sets", nargs="+", metavar="[KIND:]LIST=FOLDER")
    parser.add_argument("--keep", type=Path, help="write each query's figures here")
    parser.add_argument("--less", type=Path, help="print the differences to these kept figures")
    parser.add_argument("--index", default="", help="a vector index; default: the live one")
    parser.add_argument("--pages", action="store_true", help="compare pages of hybrid")
    parser.add_argument("--sql", action="store_true", help="ask the SQL functions")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this mode")
    arguments = parser.parse_args()
    if arguments.pages or arguments.sql:
        judged = {written: split_name(written) for written in arguments.sets}
        if arguments.sql and not all(lists for _, lists, _ in judged.values()):
            parser.error("--sql asks one list: LIST=FOLDER")
        report_pages(judged) if arguments.pages else report_sql(judged)
        return
    with open_index(arguments.index) as searcher:
        asked = [(written, mode) for written in arguments.sets for mode in arguments.mode or MODES]
        found = pd.DataFrame(one for ask in asked for one in measure(searcher, *ask))
    if arguments.keep:
        arguments.keep.write_text(found.to_json(orient="records"))
    print(tabulate_values(found).to_markdown())
    print(f"\n{tabulate_means(found).to_markdown()}")
    if arguments.less:
        other = pd.DataFrame(json.loads(arguments.less.read_text()))
        print(f"\nless {arguments.less}:\n\n{tabulate_difference(found, other).to_markdown()}")


def open_index(name: str) -> AbstractContextManager[Searcher]:
    """Open a searcher on the named vector index, live or not; "" is the live one."""
    settings = load_settings()
    with settings.database.connect("quality") as connection:
        made = list_indexes(connection, settings.vectors)
    index = next((x for x in made if x.name == name), None)
    return open_searcher(settings.search, index=index)


def measure(searcher: Searcher, written: str, mode: str) -> Iterator[Figure]:
    """Yield the figures of a set's queries in a mode."""
    kind, lists, folder = split_name(written)
    judged = read_set(folder).queries
    known = all(len(one.relevant) == 1 for one in judged)
    for one in score_queries(searcher.search, judged, [mode], lists):
        value = one.mrr if known else one.ndcg_10
        query = f"{written} {one.query_id}"
        yield Figure(kind, query, mode, value, one.success_10, one.threads_10, one.took_ms)


def tabulate_values(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each kind: the figure of each mode, and hybrid minus the better leg."""
    values = found.pivot(index=["kind", "query"], columns="mode", values="value")
    rows = {}
    for kind, of_kind in values.groupby("kind", sort=False):
        row = {"queries": str(len(of_kind))}
        row |= {str(mode): _write(of_kind[mode]) for mode in found["mode"].unique()}
        legs = [mode for mode in (Mode.fulltext, Mode.semantic) if mode in of_kind]
        if legs and Mode.hybrid in of_kind:
            better = of_kind[legs].mean().idxmax()
            row["hybrid less the better leg"] = _write(of_kind[Mode.hybrid] - of_kind[better], "+")
        rows[kind] = row
    return pd.DataFrame(rows).T


def tabulate_means(found: pd.DataFrame) -> pd.DataFrame:
    """Return success at 10, threads among the first 10, and the median latency."""
    grouped = found.groupby(["kind", "mode"], sort=False)
    means = grouped[["success", "threads"]].mean().round({"success": 3, "threads": 1})
    means["p50_ms"] = grouped["took_ms"].median().round(1)
    return pd.DataFrame(means.unstack("mode"))


def tabulate_difference(found: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the mean differences to another run, by kind and mode."""
    both = found.merge(other, on=["kind", "query", "mode"], suffixes=("", "_then"))
    both["change"] = both["value"] - both["value_then"]
    changes = both.groupby(["kind", "mode"], sort=False)["change"]
    return pd.DataFrame(changes.agg(lambda change: _write(change, "+")).unstack("mode"))


def _write(values: pd.Series, sign: str = "") -> str:
    one = estimate_mean([*values.astype(float)])
    return f"{one.mean:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"


def split_name(written: str) -> NamedSet:
    """Parse [KIND:]LIST=FOLDER into a kind, lists and a folder."""
    where, _, path = written.rpartition("=")
    kind, _, name = where.rpartition(":")
    folder = Path(path)
    return kind or folder.name.partition("-")[0], () if name == "*" else (name,), folder


class Found(NamedTuple):
    """Judgement of a page: it shows a relevant message; it shows the thread of one."""

    message: bool
    thread: bool


def report_pages(sets: Mapping[str, NamedSet]) -> None:
    """Search every set; print how both kinds of page are judged."""
    settings = load_settings()
    with (
        settings.database.connect("pages") as connection,
        open_searcher(settings.search) as searcher,
    ):
        for written, (_, lists, folder) in sets.items():
            judged = [*read_set(folder, at_least=1).queries]
            pairs = [*compare_pages(searcher, connection, judged, lists)]
            print(f"{written}: {len(pairs)} queries")
            for name in Found._fields:
                messages = [float(getattr(one, name)) for one, _ in pairs]
                rows = [float(getattr(one, name)) for _, one in pairs]
                gain = estimate_mean([b - a for a, b in zip(messages, rows, strict=True)])
                print(
                    f"  {name}: messages {estimate_mean(messages).mean:.3f}, conversations "
                    f"{estimate_mean(rows).mean:.3f}, {gain.mean:+.3f} "
                    f"[{gain.low:+.3f}, {gain.high:+.3f}]"
                )


def compare_pages(
    searcher: Searcher,
    connection: psycopg.Connection,
    judged: list[JudgedQuery],
    lists: tuple[str, ...],
) -> Iterator[tuple[Found, Found]]:
    """Yield the judgements of ten messages and of ten conversations for each query."""
    for one in judged:
        threads = {id for (id,) in connection.execute(THREADS, [[*one.relevant]])}
        asked = Request(one.text, lists=lists, without=one.citing)
        messages = searcher.search(replace(asked, group=Group.message))
        yield _find(messages, one, threads), _find(searcher.search(asked), one, threads)


def _find(response: Response, one: JudgedQuery, threads: set[str]) -> Found:
    shown = {hit.message_id for hit in response.hits}
    shown |= {row.first.message_id for row in response.conversations if row.first}
    found = {hit.thread_id for hit in response.hits}
    return Found(not shown.isdisjoint(one.relevant), not found.isdisjoint(threads))


def report_sql(sets: Mapping[str, NamedSet]) -> None:
    """Print a row for each set and function."""
    settings = load_settings()
    encoder = open_local_encoder(settings.encoder, settings.precision, settings.model_cache)
    print("| set | queries | function | nDCG@10 | MRR | success@10 | threads@10 |\n|" + "---|" * 7)
    with settings.database.connect("benchmark") as connection:
        for _, (list_name,), folder in sets.values():
            queries = read_set(folder).queries
            for function in FUNCTIONS:
                rows = [ask_function(connection, encoder, x, list_name, function) for x in queries]
                means = " | ".join(f"{mean:.3f}" for mean in np.mean(rows, axis=0))
                print(f"| {folder.name} | {len(rows)} | {function} | {means} |", flush=True)


def ask_function(
    connection: psycopg.Connection,
    encoder: LocalEncoder,
    query: JudgedQuery,
    list_name: str,
    function: str,
) -> tuple[float, ...]:
    """Ask one query, without its citing messages; return its measures."""
    vector = ",".join(map(str, encoder.encode_query(query.text).tolist()))
    given: dict[str, Any] = {"text": query.text, "vector": f"[{vector}]", "list": list_name}
    statement = f"select message_id, coalesce(thread_id, message_id) from {FUNCTIONS[function]}"
    with connection.transaction(force_rollback=True):
        for message_id in query.citing:
            connection.execute("delete from messages where message_id = %s", [message_id])
        rows = connection.execute(statement.encode(), given).fetchall()
    ids, threads = [row[0] for row in rows], [row[1] for row in rows]
    return (
        ndcg(ids, query.relevant, 10),
        reciprocal_rank(ids, query.relevant),
        success(ids, query.relevant, 10),
        float(count_threads(threads, 10)),
    )


if __name__ == "__main__":
    main()
