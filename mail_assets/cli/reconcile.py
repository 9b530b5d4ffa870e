"""reconcile: the indexes of vectors and words compared with what they should hold."""

import sys
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import FAILED, examples, pass_settings, print_error
from mail_assets.cli.index import open_bucket
from mail_assets.cli.options import json_lines_option
from mail_assets.cli.output import print_json, print_table
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.steps.reconcile_index import Reconciliation


@click.command(epilog=examples("mail-assets reconcile", "mail-assets reconcile --repair"))
@click.option("--repair", is_flag=True, help="Delete what is stale, mark what is missing.")
@click.option("--delete-foreign", is_flag=True, help="Delete keys that this database never wrote.")
@json_lines_option
@pass_settings
def reconcile(settings: Settings, repair: bool, delete_foreign: bool, as_json: bool) -> None:
    """Compare the indexes with what they should hold.

    Every key is compared with the manifest, and with the chunks in the index of the configured
    encoder, with the messages in that of words. Exit code 1 says that they differed.
    """
    from mail_assets.steps.reconcile_index import reconcile
    from mail_assets.steps.vector_index import open_mail_keys
    from mail_assets.steps.word_index import open_mail_words

    with open_bucket(settings) as (connection, bucket), show_activity("comparing all keys"):
        opened = open_mail_keys(bucket.bucket, bucket.url, settings.encoder, settings.precision)
        found = [
            reconcile(connection, index, repair=repair, delete_foreign=delete_foreign)
            for index in (opened, open_mail_words(settings.words))
        ]
    for one in found:
        if as_json:
            print_json(one.as_json())
        else:
            _print(one)
    if all(one.clean for one in found):
        return
    if repair:
        print_error("repaired what could be; `mail-assets backfill` writes what is missing")
    sys.exit(FAILED)


def _print(found: "Reconciliation") -> None:
    figures = ", ".join(f"{name} {count}" for name, count in found.figures.items())
    click.echo(f"{found.index}: {figures}{', clean' if found.clean else ''}")
    print_table(
        ("fault", "keys", "month", "examples"),
        [
            (fault.fault, fault.keys, fault.month or "none", ", ".join(fault.examples))
            for fault in found.faults
        ],
    )
