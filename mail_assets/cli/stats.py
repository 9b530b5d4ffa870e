"""stats: how much is stored, for each list."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.options import json_option
from mail_assets.cli.output import plural, print_json, print_table
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets stats"))
@json_option
@pass_settings
def stats(settings: Settings, as_json: bool) -> None:
    """Count what is stored, for each list."""
    from mail_assets.steps.index_lifecycle import live_encoder
    from mail_assets.steps.vector_index import index_name, manifest_name
    from mail_assets.steps.word_lifecycle import find_live_words
    from mail_assets.tables.stats import read_stats

    with settings.database.connect("stats") as connection:
        live = live_encoder(connection, settings.vectors, settings.encoder, settings.precision)
        vectors = manifest_name(settings.vectors, index_name(*live))
        words = manifest_name(settings.words, find_live_words(connection, settings.words))
        figures = read_stats(connection, settings.lists, vectors, words)
    if as_json:
        print_json(figures)
        return
    lists = figures["lists"]
    print_table(
        ("list", *next(iter(lists.values()))),
        [(name, *counts.values()) for name, counts in lists.items()],
    )
    click.echo(plural(figures["threads"], "thread"))
