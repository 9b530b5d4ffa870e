"""reconcile: the vector bucket compared with the manifest and the chunks."""

import sys

import click

from mail_assets.cli.command import FAILED, examples, pass_settings, print_error
from mail_assets.cli.index import open_bucket
from mail_assets.cli.options import json_option
from mail_assets.cli.output import print_json, print_table
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets reconcile", "mail-assets reconcile --repair"))
@click.option("--repair", is_flag=True, help="Delete what is stale, mark what is missing.")
@click.option("--delete-foreign", is_flag=True, help="Delete keys that this database never wrote.")
@json_option
@pass_settings
def reconcile(settings: Settings, repair: bool, delete_foreign: bool, as_json: bool) -> None:
    """Compare the vector bucket with what it should hold.

    Every key is compared with the manifest and the chunks, in the index of the configured
    encoder. Exit code 1 says that they differed.
    """
    from mail_assets.steps.reconcile_index import reconcile
    from mail_assets.steps.vector_index import open_mail_index

    with open_bucket(settings) as (connection, bucket), show_activity("comparing all keys"):
        found = reconcile(
            connection,
            open_mail_index(*bucket, settings.encoder, settings.precision),
            repair=repair,
            delete_foreign=delete_foreign,
        )
    if as_json:
        print_json(found.as_json())
    else:
        figures = ", ".join(f"{name} {count}" for name, count in found.figures.items())
        click.echo(f"{found.index}: {figures}{', clean' if found.clean else ''}")
        print_table(
            ("fault", "keys", "month", "examples"),
            [
                (fault.fault, fault.keys, fault.month or "none", ", ".join(fault.examples))
                for fault in found.faults
            ],
        )
    if repair and not found.clean:
        print_error("repaired what could be; `mail-assets index build` writes what is missing")
    if not found.clean:
        sys.exit(FAILED)
