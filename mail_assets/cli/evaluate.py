"""evaluate: a judged set of queries run through search."""

from pathlib import Path

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.judged import judged_options, read_judged_queries
from mail_assets.cli.options import json_option, lists_option, select_lists
from mail_assets.cli.output import print_json, print_table
from mail_assets.cli.searcher import open_configured_searcher
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets evaluate --queries queries.jsonl --qrels qrels.tsv"))
@judged_options
@click.option("--mode", "modes", multiple=True, help="Only this mode; repeatable.")
@lists_option("Only this list; repeatable.")
@json_option
@pass_settings
def evaluate(  # a parameter for each option
    settings: Settings,
    queries: Path | None,
    qrels: Path | None,
    min_relevant: int | None,
    modes: tuple[str, ...],
    lists: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure search by judged queries.

    Measures are nDCG@10, MRR, recall@50, success@10 and latency. Each figure is a mean over the
    queries with its 95 % interval, bootstrapped; latencies are those of a warm searcher.
    """
    from mail_assets.evaluation.scores import score_queries
    from mail_assets.evaluation.summary import (
        build_summary_table,
        serialize_scores,
        summarise_scores,
    )
    from mail_assets.search.request import MODES

    select_lists(settings, lists)
    judged = read_judged_queries(settings, queries, qrels, min_relevant)
    if judged is None:
        raise click.UsageError("give --queries and --qrels, or set MAIL_QUALITY_SET")
    with open_configured_searcher(settings) as searcher:
        scores = score_queries(searcher.search, judged, modes or MODES, lists)
    if as_json:
        print_json(serialize_scores(scores))
    else:
        table = build_summary_table(summarise_scores(scores)).reset_index()
        print_table([*table.columns], table.to_numpy().tolist())
