"""The command line, `mail-assets`: one module for each command, by its name.

A command imports what it needs when it runs: `search` must not wait for Dagster.
"""

import logging

import click

from mail_assets import __version__
from mail_assets.cli.answer import answer
from mail_assets.cli.backfill import backfill
from mail_assets.cli.backup import backup, prune, restore
from mail_assets.cli.command import completion, examples, shows_colour
from mail_assets.cli.evaluate import evaluate
from mail_assets.cli.forget import forget, remember
from mail_assets.cli.home import doctor, down, status, up
from mail_assets.cli.index import index, reconcile
from mail_assets.cli.init import init
from mail_assets.cli.search import search, similar
from mail_assets.cli.serve import mcp, serve
from mail_assets.cli.show import list_messages, show, stats
from mail_assets.cli.sql import sql
from mail_assets.cli.thread import thread


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "mail-assets up",
        "mail-assets backfill",
        "mail-assets search 'why do jobs run twice'",
    ),
)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context) -> None:
    """Turn mailing-list archives into search.

    Settings come from the environment (MAIL_HOME, MAIL_LISTS, MAIL_PG_DSN, MAIL_STORE,
    MAIL_VECTORS, MAIL_ENCODER, MAIL_PRECISION) and lists.toml; see README.md.

    Standard output has the answer and nothing else. Exit codes: 0 done, 1 it failed or there is
    nothing of that name, 2 a wrong argument or setting.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    if not shows_colour():
        context.color = False


READING = (search, similar, answer, evaluate, stats, list_messages, show, thread, serve, mcp)
RUNNING = (init, up, down, status, backfill, index, reconcile, forget, remember, sql, completion)
KEEPING = (doctor, prune, backup, restore)

for command in (*RUNNING, *KEEPING, *READING):
    main.add_command(command)
