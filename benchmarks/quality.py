"""Measure search on judged sets of several kinds, by leg and hybrid: tables of docs/search.md.

    MAIL_HOME=... python -m benchmarks.quality [KIND:]LIST=FOLDER ... [--keep FILE] [--less FILE]

A FOLDER is a judged set (mail_assets/evaluation/judged.py) that is asked of LIST, or of every list
("*=FOLDER"). KIND is the column, else the folder's name up to its first dash. The queries of a kind
count the same, whatever set they are of. They are asked and measured as `mail-assets evaluate`
does, each message by itself; benchmarks.pages measures pages. `--keep` writes each query's figures;
`--less` prints the differences to those that another run kept. `--index NAME` asks an index that is
not live; `--static-alone` leaves the ranks of a static index as they are.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pandas as pd

from mail_assets.evaluation.judged import read_judged_set
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.evaluation.scores import score_queries
from mail_assets.search.language.request import MODES, Mode
from mail_assets.search.live_index import VectorSearch
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings
from mail_assets.tables.indexes import list_indexes


class Figure(NamedTuple):
    """Figures of a query in a mode; `value` is its nDCG@10 or MRR, as its kind is measured."""

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
    parser.add_argument("--less", type=Path, help="print differences to the figures kept here")
    parser.add_argument("--static-alone", action="store_true", help="no model for candidates")
    parser.add_argument("--index", default="", help="an index of vectors; default: the live one")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this mode")
    arguments = parser.parse_args()
    with open_index(arguments.index) as searcher:
        if arguments.static_alone:
            patch.object(VectorSearch, "reranker", lambda self: None).start()
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
    """Open a searcher that asks the index of a name, live or not."""
    settings = load_settings()
    with settings.database.connect("quality") as connection:
        made = list_indexes(connection, settings.vectors)
    index = next((x for x in made if x.name == name), None)
    return open_searcher(settings.search, index=index)


def measure(searcher: Searcher, written: str, mode: str) -> Iterator[Figure]:
    """Yield the figures of a set's queries in a mode."""
    kind, lists, folder = split_name(written)
    judged = read_judged_set(folder)
    known = all(len(one.relevant) == 1 for one in judged)
    for one in score_queries(searcher.search, judged, [mode], lists):
        value = one.mrr if known else one.ndcg_10
        query = f"{written} {one.query_id}"
        yield Figure(kind, query, mode, value, one.success_10, one.threads_10, one.took_ms)


def tabulate_values(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each kind: the figure of each mode, and hybrid less the better leg."""
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
    """Return the mean difference of each mode's figures to those of another run, by kind."""
    both = found.merge(other, on=["kind", "query", "mode"], suffixes=("", "_then"))
    both["change"] = both["value"] - both["value_then"]
    changes = both.groupby(["kind", "mode"], sort=False)["change"]
    return pd.DataFrame(changes.agg(lambda change: _write(change, "+")).unstack("mode"))


def _write(values: pd.Series, sign: str = "") -> str:
    one = estimate_mean([*values.astype(float)])
    return f"{one.mean:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"


def split_name(written: str) -> tuple[str, tuple[str, ...], Path]:
    """Return the kind of a set, the lists that it is asked of, and its folder."""
    where, _, path = written.rpartition("=")
    kind, _, name = where.rpartition(":")
    folder = Path(path)
    return kind or folder.name.partition("-")[0], () if name == "*" else (name,), folder


if __name__ == "__main__":
    main()
