"""The command line, `mail-assets`: the table of its commands, grouped as in README.

A command is imported when it is called, and imports what it needs when it runs, so that `search`
does not wait for Dagster.
"""

import click

from mail_assets import __version__
from mail_assets.cli.command import CommandGroup, examples

COMMANDS = {
    "search": "search:search",
    "similar": "search:similar",
    "thread": "thread:thread",
    "show": "thread:show",
    "series": "series:series",
    "patches": "series:patches",
    "interdiff": "series:interdiff",
    "list": "lists:lists",
    "stats": "lists:stats",
    "serve": "serve:serve",
    "mcp": "serve:mcp",
    "answer": "answer:answer",
    "why": "why:why",
    "evaluate": "evaluate:evaluate",
    "init": "home:init",
    "up": "home:up",
    "down": "home:down",
    "status": "home:status",
    "backfill": "backfill:backfill",
    "index": "index:index",
    "reconcile": "index:reconcile",
    "sql": "serve:sql",
    "forget": "forget:forget",
    "remember": "forget:remember",
    "doctor": "home:doctor",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "prune": "backup:prune",
    "completion": "home:completion",
}

HELP = """Turn mailing-list archives into search.

Settings come from the environment (MAIL_HOME, MAIL_LISTS, MAIL_PG_DSN, MAIL_STORE, MAIL_VECTORS,
MAIL_ENCODER, MAIL_PRECISION) and lists.toml; see docs/settings.md.

Only results go to standard output. Exit codes: 0 success, 1 failure or not found, 2 a wrong
argument or setting.
"""

main = click.version_option(__version__)(
    CommandGroup(
        COMMANDS,
        help=HELP,
        epilog=examples(
            "mail-assets up", "mail-assets backfill", "mail-assets search 'why do jobs run twice'"
        ),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)
