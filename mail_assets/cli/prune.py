"""prune: what is old and not needed deleted."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.options import json_lines_option
from mail_assets.cli.output import print_json, print_note, print_table
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings
from mail_assets.steps.pruned import KEEP_DAYS, LEAST_DAYS


@click.command(epilog=examples("mail-assets prune --dry-run", "mail-assets prune --keep-days 180"))
@click.option(
    "--keep-days",
    type=click.IntRange(min=LEAST_DAYS),
    default=KEEP_DAYS,
    show_default=True,
    help="Days that everything is kept.",
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@json_lines_option
@pass_settings
def prune(settings: Settings, keep_days: int, dry_run: bool, as_json: bool) -> None:
    """Delete what is old and not needed.

    Dagster's runs and events, but for the last of each partition and check, quality over time and
    what failed and was not made since; embeddings of encoders whose index was retired, and of
    texts that are gone; former archives kept for MAIL_KEEP_ARCHIVES days; old versions of indexes
    that no search is reading. A backfill may run meanwhile.
    """
    from mail_assets.defs.pruning import PrunePlan, prune_home

    with show_activity("pruning") as show:
        found = prune_home(settings, PrunePlan(keep_days, dry_run), show)
    if as_json:
        for one in found:
            print_json(one._asdict())
        return
    sizes = [("?" if one.bytes is None else f"{one.bytes / 1e6:,.1f} MB") for one in found]
    rows = [(one.what, one.things, size) for one, size in zip(found, sizes, strict=True)]
    print_table(("what", "count", "size"), rows)
    if dry_run:
        print_note("nothing was deleted")
