"""backfill."""

import sys

import click

from mail_assets.cli.console import FAILED, check_month, known_lists, say, with_settings
from mail_assets.settings.environment import Settings


@click.command()
@click.option("--list", "lists", multiple=True, metavar="LIST", help="Default: every list.")
@click.option("--from", "first", metavar="YYYY-MM", help="First month; default: all there are.")
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; default: all there are.")
@click.option("--allow-loss", is_flag=True, help="Accept archives that lost messages.")
@with_settings
def backfill(
    settings: Settings,
    lists: tuple[str, ...],
    first: str | None,
    last: str | None,
    allow_loss: bool,
) -> None:
    """Bring months from their source to the vector bucket, one run a list and year."""
    check_month("--from", first)
    check_month("--to", last)
    names = known_lists(settings, lists)

    from mail_assets.defs.backfill import backfill_lists, report_lines

    report = backfill_lists(settings, names, first, last, allow_loss=allow_loss, say=say)
    for line in report_lines(report):
        click.echo(line)
    for what, reason in report.failed.items():
        say(f"mail-assets: {what} failed: {reason}")
    if report.failed:
        sys.exit(FAILED)
