"""The filters that commands share which search: lists, days and sender.

What does not live here: what a filter means (search/filters.py), and the same filters written into
a question (search/syntax.py).
"""

from collections.abc import Callable

import click

_OPTIONS = (
    click.option(
        "--list", "lists", multiple=True, metavar="LIST", help="Only this list; repeatable."
    ),
    click.option("--after", metavar="DAY", help="From this day on: YYYY, YYYY-MM or YYYY-MM-DD."),
    click.option("--before", metavar="DAY", help="Before this day."),
    click.option("--sender", default="", help="An address, or a part of a name or address."),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --list, --after, --before and --sender to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
