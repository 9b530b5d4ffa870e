"""evaluate: a judged set of queries run through search."""

from pathlib import Path

import click

from mail_assets.cli.console import answer_json, known_lists, searcher_of, with_settings
from mail_assets.settings import Settings

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--queries", type=FILE, required=True, help='One {"_id", "text"} a line.')
@click.option("--qrels", type=FILE, required=True, help="Query id, message id, grade; by tabs.")
@click.option("--mode", "modes", multiple=True, help="Only this mode; repeatable.")
@click.option("--list", "lists", multiple=True, metavar="LIST", help="Only this list; repeatable.")
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Leave out queries with fewer relevant messages.",
)
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object, each query in it.")
@with_settings
def evaluate(
    settings: Settings,
    queries: Path,
    qrels: Path,
    modes: tuple[str, ...],
    lists: tuple[str, ...],
    min_relevant: int,
    as_object: bool,
) -> None:
    """Say how well search answers judged queries: nDCG@10, MRR, recall@50, success@10, latency.

    Each figure is a mean over the queries with its 95 % interval, bootstrapped; latencies are
    those of a warm searcher.
    """
    from mail_assets.search.evaluation import as_json, as_table, summarise
    from mail_assets.search.evaluation import evaluate as run
    from mail_assets.search.judged import read_judged
    from mail_assets.search.request import MODES

    known_lists(settings, lists)
    judged = read_judged(queries, qrels, min_relevant)
    with searcher_of(settings) as searcher:
        scores = run(searcher.search, judged, modes or MODES, lists)
    if as_object:
        answer_json(as_json(scores))
    else:
        click.echo(as_table(summarise(scores)).to_string())
