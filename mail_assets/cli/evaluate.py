"""evaluate: a judged set of queries run through search."""

from pathlib import Path

import click

from mail_assets.cli.console import answer_json, known_lists, searcher_of, with_settings
from mail_assets.cli.judged import judged_options, judged_set
from mail_assets.settings.environment import Settings


@click.command()
@judged_options
@click.option("--mode", "modes", multiple=True, help="Only this mode; repeatable.")
@click.option("--list", "lists", multiple=True, metavar="LIST", help="Only this list; repeatable.")
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object, each query in it.")
@with_settings
def evaluate(
    settings: Settings,
    queries: Path | None,
    qrels: Path | None,
    min_relevant: int | None,
    modes: tuple[str, ...],
    lists: tuple[str, ...],
    as_object: bool,
) -> None:
    """Say how well search answers judged queries: nDCG@10, MRR, recall@50, success@10, latency.

    Each figure is a mean over the queries with its 95 % interval, bootstrapped; latencies are
    those of a warm searcher.
    """
    from mail_assets.evaluation.scores import score_queries
    from mail_assets.evaluation.summary import scores_json, summarise, summary_table
    from mail_assets.search.request import MODES

    known_lists(settings, lists)
    judged = judged_set(settings, queries, qrels, min_relevant)
    if judged is None:
        raise click.UsageError("give --queries and --qrels, or set MAIL_QUALITY_SET")
    with searcher_of(settings) as searcher:
        scores = score_queries(searcher.search, judged, modes or MODES, lists)
    if as_object:
        answer_json(scores_json(scores))
    else:
        click.echo(summary_table(summarise(scores)).to_string())
