"""The command line, `mail-assets`: one module for each group of commands.

What does not live here: what the commands do. A command imports what it needs when it runs:
`search` must not wait for Dagster.
"""

import logging

import click

from mail_assets import __version__
from mail_assets.cli.answer import answer
from mail_assets.cli.evaluate import evaluate
from mail_assets.cli.forgetting import forget, remember
from mail_assets.cli.indexes import index, reconcile
from mail_assets.cli.init import init
from mail_assets.cli.pipeline import backfill
from mail_assets.cli.reading import list_, show, stats, thread
from mail_assets.cli.search import search, similar
from mail_assets.cli.server import down, status, up
from mail_assets.cli.sql import sql


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Mailing-list archives to search that people trust.

    Settings come from the environment (MAIL_HOME, MAIL_LISTS, MAIL_PG_DSN, MAIL_STORE,
    MAIL_VECTORS, MAIL_ENCODER, MAIL_PRECISION) and lists.toml; see README.md.

    Standard output carries the answer and nothing else. Exit codes: 0 done, 1 it failed or
    there is nothing of that name, 2 a wrong argument or setting.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")


READING = (search, similar, answer, evaluate, stats, list_, show, thread)
RUNNING = (init, up, down, status, backfill, index, reconcile, forget, remember, sql)

for command in (*RUNNING, *READING):
    main.add_command(command)
