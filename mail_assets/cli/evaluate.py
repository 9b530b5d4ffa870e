"""The command `evaluate`: measures search with sets of judged queries."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    examples,
    json_option,
    lists_option,
    pass_settings,
    print_json,
    print_note,
    print_table,
    select_published,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.evaluation.judged import JudgedSet, Score


def read_named_set(written: str, lists: tuple[str, ...], min_relevant: int | None) -> "JudgedSet":
    """Read a judged set given as "LIST=FOLDER", or as "FOLDER" to be asked of `lists`."""
    from mail_assets.evaluation.judged import QRELS, QUERIES, read_set

    name, _, path = written.rpartition("=")
    folder = Path(path)
    for file in (QUERIES, QRELS):
        if not (folder / file).is_file():
            raise click.UsageError(f"--set {written}: {folder / file} is no file")
    judged = read_set(folder, min_relevant)
    return judged._replace(name=folder.name, lists=(name,) if name else lists)


@click.command(
    epilog=examples("mail-assets evaluate --set harbor-users=judged/topics --set judged/citations")
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    help="Leave out queries with fewer relevant messages; default: 3, or 1 if most queries of the "
    "set have fewer than 3.",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="[LIST=]FOLDER",
    help="A folder with queries.jsonl and qrels.tsv, asked of one list; repeatable. Default: "
    "MAIL_QUALITY_SET.",
)
@click.option("--mode", "modes", multiple=True, help="Only this mode; repeatable.")
@click.option(
    "--group",
    default="message",
    show_default=True,
    help="Rows that are judged, as in `search`: conversation or message.",
)
@lists_option("Only this list; repeatable.")
@json_option
@pass_settings
def evaluate(  # a parameter for each option
    settings: Settings,
    min_relevant: int | None,
    sets: tuple[str, ...],
    modes: tuple[str, ...],
    group: str,
    lists: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure search with judged queries.

    The measures are nDCG@10, MRR, recall@50, success@10, the number of different threads among the
    first 10, and latency. For thread_mrr and thread_success@10, any message of a relevant message's
    thread counts. Each figure is a mean over the queries with a bootstrapped 95 % interval. Latency
    is that of a warm searcher. Queries that no search can answer are left out, and their number is
    printed.
    """
    from mail_assets.evaluation.judged import find_threads, read_set, score_queries
    from mail_assets.search.language.request import MODES, RequestError
    from mail_assets.search.open import open_searcher

    select_published(settings, lists)
    asked = [read_named_set(one, lists, min_relevant) for one in sets]
    if not sets:
        if settings.quality_set is None:
            raise click.UsageError("give --set, or set MAIL_QUALITY_SET")
        asked = [read_set(settings.quality_set, min_relevant)._replace(lists=lists)]
    for one in asked:
        select_published(settings, one.lists)
    found = []
    with open_searcher(settings.search) as searcher:
        for one in asked:
            threads = find_threads(searcher, one.queries)
            note_unknown(one, threads)
            judged = one.leave_out_unfindable(threads.keys())
            note_left_out(judged)
            if judged.queries:
                scores = score_queries(
                    *(searcher.search, judged.queries, modes or MODES, judged.lists, group),
                    threads=threads,
                )
                found.append((judged, scores))
    if not found:
        raise RequestError("no query is left to ask: the judged messages are of another archive")
    if as_json:
        print_json(_serialize(found, group))
    else:
        _print(found, group)


def note_unknown(judged: "JudgedSet", archived: Collection[str]) -> None:
    """Print how many judged messages are not in the archive: the set may be of another one."""
    ids = {message_id for query in judged.queries for message_id in query.relevant}
    if unknown := ids.difference(archived):
        print_note(
            f"{_name(judged)}{len(unknown)} of {len(ids)} judged messages are not in this archive, "
            f"<{min(unknown)}> among them: no search finds these"
        )


def note_left_out(judged: "JudgedSet") -> None:
    """Print how many queries of a set are not asked, and the reasons."""
    if judged.left_out:
        every = len(judged.queries) + sum(judged.left_out.values())
        reasons = "; ".join(f"{count} {why}" for why, count in sorted(judged.left_out.items()))
        print_note(f"{_name(judged)}{len(judged.queries)} of {every} queries are asked: {reasons}")


def _name(judged: "JudgedSet") -> str:
    return f"{judged.name}: " if judged.name else ""


def _serialize(found: "list[tuple[JudgedSet, list[Score]]]", group: str) -> dict[str, Any]:
    from mail_assets.evaluation.quality import serialize_scores

    parts: dict[str, Any] = {"group": group, "sets": [], "modes": [], "queries": []}
    for one, scores in found:
        named = {"set": one.name} if one.name else {}
        about = {"lists": one.lists, "queries": len(one.queries), "left_out": {**one.left_out}}
        parts["sets"].append(named | about)
        for key, rows in serialize_scores(scores).items():
            parts[key] += [named | row for row in rows]
    return parts


def _print(found: "list[tuple[JudgedSet, list[Score]]]", group: str) -> None:
    import pandas as pd

    from mail_assets.evaluation.quality import build_summary_table, summarise_scores

    tables = []
    for one, scores in found:
        table = build_summary_table(summarise_scores(scores)).reset_index()
        table.insert(1, "group", group)
        if one.name:
            table.insert(0, "set", one.name)
        tables.append(table)
    rows = pd.concat(tables)
    print_table([*rows.columns], rows.to_numpy().tolist())
