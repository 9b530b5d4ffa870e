"""list: the messages of a list."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.options import (
    check_month,
    complete_lists,
    json_lines_option,
    select_lists,
)
from mail_assets.cli.output import print_json, printable_line
from mail_assets.settings.environment import Settings


@click.command(
    "list",
    epilog=examples("mail-assets list --list harbor-dev --month 2024-03"),
)
@click.option(
    "--list",
    "list_name",
    required=True,
    metavar="LIST",
    help="Which list.",
    shell_complete=complete_lists,
)
@click.option("--month", metavar="YYYY-MM", help="Only this month.")
@json_lines_option
@pass_settings
def list_messages(settings: Settings, list_name: str, month: str | None, as_json: bool) -> None:
    """List the messages of a mailing list.

    They are in the order of its archives: day, author, subject.
    """
    from mail_assets.tables.messages import list_messages

    select_lists(settings, (list_name,))
    check_month("--month", month)
    with settings.database.connect("list") as connection:
        # one by one, not as a table: a list of 400,000 messages is not read into memory
        for row in list_messages(connection, list_name, month):
            if as_json:
                print_json(row)
            else:
                sender, subject = map(printable_line, (row["from_email"], row["subject"]))
                click.echo(f"{row['sent_at'][:10]}  {sender:<32.32}  {subject}")
