"""list, stats: the messages of a list, and counts of what is stored."""

import click

from mail_assets.cli.command import (
    check_month,
    complete_lists,
    examples,
    json_lines_option,
    json_option,
    open_reading,
    pass_settings,
    plural,
    print_json,
    print_table,
    printable_line,
    select_published,
)
from mail_assets.settings.settings import Settings


@click.command(
    "list",
    epilog=examples(
        "mail-assets list messages harbor-dev --month 2024-03",
        "mail-assets list messages harbor-dev --sort newest",
    ),
)
@click.argument("name", required=False, metavar="LIST", shell_complete=complete_lists)
@click.option("--list", "named", metavar="LIST", hidden=True, shell_complete=complete_lists)
@click.option("--month", metavar="YYYY-MM", help="Only this month.")
@click.option(
    "--sort",
    type=click.Choice(["archive", "oldest", "newest"]),
    default="archive",
    show_default=True,
    help="As its archives have them, or by date.",
)
@json_lines_option
@pass_settings
def list_messages(
    settings: Settings,
    name: str | None,
    named: str | None,
    month: str | None,
    sort: str,
    as_json: bool,
) -> None:
    """List the messages of a mailing list.

    They are in the order of its archives: day, author, subject.
    """
    from mail_assets.reading.records import list_messages

    if (name is None) == (named is None):
        raise click.UsageError(f"name one list; there are: {', '.join(settings.lists)}")
    [list_name] = select_published(settings, (name or named or "",))
    check_month("--month", month)
    with open_reading(settings, "list") as connection:
        # one by one, not as a table: a list of 400,000 messages is not read into memory
        for row in list_messages(connection, list_name, month, sort):
            if as_json:
                print_json(row)
            else:
                sender, subject = map(printable_line, (row["from_email"], row["subject"]))
                click.echo(f"{row['sent_at'][:10]}  {sender:<32.32}  {subject}")


@click.command(epilog=examples("mail-assets stats"))
@json_option
@pass_settings
def stats(settings: Settings, as_json: bool) -> None:
    """Count what is stored, for each list."""
    from mail_assets.indexes.live import find_live_words, live_encoder
    from mail_assets.indexes.names import index_name, manifest_name
    from mail_assets.reading.browsing import read_stats

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
