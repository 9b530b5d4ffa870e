"""doctor: what is wrong with a home, and what mends it."""

import sys

import click

from mail_assets.cli.command import FAILED, examples, pass_settings
from mail_assets.cli.options import json_lines_option
from mail_assets.cli.output import print_json, print_note
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets doctor"))
@json_lines_option
@pass_settings
def doctor(settings: Settings, as_json: bool) -> None:
    """Say what is wrong, and the command that mends it.

    Months that failed or are not made from the archives of now, indexes that are missing or of a
    former version, settings that contradict, an encoder that differs, locks that are left, disks
    that fill, history that nothing needs, a server of another version. Nothing is changed, and no
    table is read whole. Exit code 1 says that something was found.
    """
    from mail_assets.defs.doctor import examine_home

    with show_activity("looking"):
        findings = examine_home(settings)
    for one in findings:
        if as_json:
            print_json(one._asdict())
        else:
            click.echo(f"{one.problem}: {one.where}")
            click.secho(f"  {one.remedy}", bold=True)
    if findings:
        sys.exit(FAILED)
    print_note("nothing found")
