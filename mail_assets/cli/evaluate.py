"""evaluate: judged sets of queries run through search."""

from collections.abc import Callable, Sequence
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
    select_lists,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.evaluation.judged import JudgedQuery, JudgedSet
    from mail_assets.evaluation.scores import Score


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_OPTIONS = (
    click.option(
        "--queries", type=_FILE, help='One {"_id", "text"} a line. Default: of MAIL_QUALITY_SET.'
    ),
    click.option("--qrels", type=_FILE, help="Query id, message id and grade, separated by tabs."),
    click.option(
        "--min-relevant",
        type=click.IntRange(min=1),
        help="Leave out queries with fewer relevant messages; default: 3, and 1 where no query of "
        "the set has two.",
    ),
)


def judged_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --queries, --qrels and --min-relevant to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_judged_queries(
    settings: Settings, queries: Path | None, qrels: Path | None, min_relevant: int | None
) -> "list[JudgedQuery] | None":
    """Read the judged queries that the options name, else those of the settings, if any."""
    from mail_assets.evaluation.judged import read_judged, read_judged_set

    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels go together")
    if queries is not None and qrels is not None:
        return read_judged(queries, qrels, min_relevant)
    return read_judged_set(settings.quality_set, min_relevant) if settings.quality_set else None


def read_named_set(written: str, lists: tuple[str, ...], min_relevant: int | None) -> "JudgedSet":
    """Read a set written as "LIST=FOLDER", or "FOLDER" that is asked of `lists`."""
    from mail_assets.evaluation.judged import QRELS, QUERIES, JudgedSet, read_judged_set

    name, _, path = written.rpartition("=")
    folder = Path(path)
    for file in (QUERIES, QRELS):
        if not (folder / file).is_file():
            raise click.UsageError(f"--set {written}: {folder / file} is no file")
    return JudgedSet(folder.name, (name,) if name else lists, read_judged_set(folder, min_relevant))


@click.command(
    epilog=examples(
        "mail-assets evaluate --queries queries.jsonl --qrels qrels.tsv",
        "mail-assets evaluate --set harbor-users=judged/topics --set judged/citations",
    )
)
@judged_options
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="[LIST=]FOLDER",
    help="A folder with queries.jsonl and qrels.tsv, asked of one list; repeatable.",
)
@click.option("--mode", "modes", multiple=True, help="Only this mode; repeatable.")
@lists_option("Only this list; repeatable.")
@json_option
@pass_settings
def evaluate(  # a parameter for each option
    settings: Settings,
    queries: Path | None,
    qrels: Path | None,
    min_relevant: int | None,
    sets: tuple[str, ...],
    modes: tuple[str, ...],
    lists: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure search by judged queries.

    Measures are nDCG@10, MRR, recall@50, success@10, different threads among the first 10, and
    latency. Messages are judged one by one, in the order of their scores. Each figure is a mean
    over the queries with its 95 % interval, bootstrapped; latencies are those of a warm searcher.
    """
    from mail_assets.evaluation.judged import JudgedSet
    from mail_assets.evaluation.scores import score_queries
    from mail_assets.search.language.request import MODES
    from mail_assets.search.open import open_searcher

    select_lists(settings, lists)
    if sets and (queries or qrels):
        raise click.UsageError("give --set, or --queries and --qrels")
    asked = [read_named_set(one, lists, min_relevant) for one in sets]
    if not sets:
        judged = read_judged_queries(settings, queries, qrels, min_relevant)
        if judged is None:
            raise click.UsageError("give --set, --queries and --qrels, or set MAIL_QUALITY_SET")
        asked = [JudgedSet("", lists, judged)]
    for one in asked:
        select_lists(settings, one.lists)
    with open_searcher(settings.search) as searcher:
        found = [
            (one, score_queries(searcher.search, one.queries, modes or MODES, one.lists))
            for one in asked
        ]
    if as_json:
        print_json(_serialize(found))
    else:
        _print(found)
    note_unknown(settings, asked)


def note_unknown(settings: Settings, asked: "Sequence[JudgedSet]") -> None:
    """Note the judged messages that are not in the archive: a set may be of another archive."""
    from mail_assets.reading.browsing import find_archived_ids

    with settings.database.connect("evaluate") as connection:
        for one in asked:
            ids = {message_id for query in one.queries for message_id in query.relevant}
            if unknown := ids - find_archived_ids(connection, ids):
                name = f"{one.name}: " if one.name else ""
                print_note(
                    f"{name}{len(unknown)} of {len(ids)} judged messages are not in this archive, "
                    f"<{min(unknown)}> among them: no search finds these"
                )


def _serialize(found: "list[tuple[JudgedSet, list[Score]]]") -> dict[str, Any]:
    """Return summaries and scores, each with the name of its set if it has one."""
    from mail_assets.evaluation.quality import serialize_scores

    parts: dict[str, Any] = {"modes": [], "queries": []}
    for one, scores in found:
        named = {"set": one.name} if one.name else {}
        for key, rows in serialize_scores(scores).items():
            parts[key] += [named | row for row in rows]
    return parts


def _print(found: "list[tuple[JudgedSet, list[Score]]]") -> None:
    import pandas as pd

    from mail_assets.evaluation.quality import build_summary_table, summarise_scores

    tables = []
    for one, scores in found:
        table = build_summary_table(summarise_scores(scores)).reset_index()
        if one.name:
            table.insert(0, "set", one.name)
        tables.append(table)
    rows = pd.concat(tables)
    print_table([*rows.columns], rows.to_numpy().tolist())
