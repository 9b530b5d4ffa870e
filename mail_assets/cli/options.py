"""Options that commands share, and what is checked of their values."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from mail_assets.month import is_month
from mail_assets.settings.environment import Settings, load_settings
from mail_assets.settings.errors import SettingsError


def complete_lists(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the lists of lists.toml that begin as typed; none where the settings are wrong."""
    try:
        names = load_settings().lists
    except (SettingsError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def lists_option(text: str) -> Callable[..., Any]:
    """Return the option --list, which may be repeated."""
    return click.option(
        "--list",
        "lists",
        multiple=True,
        metavar="LIST",
        help=text,
        shell_complete=complete_lists,
    )


#: --json of a command whose answer is one object, and of one that prints many.
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object a line."
)


def refuse_empty(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Refuse an option without a value: taken for one that is not given it would change nothing.

    Raises:
        click.BadParameter: the value is empty.
    """
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty")
    return value


def read_message_id(text: str) -> str:
    """Return a Message-ID as it is stored, "" where no message can have it.

    Raises:
        click.UsageError: nothing is given.
    """
    from mail_assets.mail.message.ids import normalize_id

    if not text.strip(" <>"):
        raise click.UsageError("the Message-ID is empty")
    return normalize_id(text)


_FILTERS = (
    lists_option("Only this list; repeatable."),
    click.option(
        "--after",
        metavar="DAY",
        callback=refuse_empty,
        help="From this day on: YYYY, YYYY-MM or YYYY-MM-DD.",
    ),
    click.option("--before", metavar="DAY", callback=refuse_empty, help="Before this day."),
    click.option(
        "--sender", callback=refuse_empty, help="An address, or a part of a name or address."
    ),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the filters of search to a command: --list, --after, --before and --sender."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def select_lists(settings: Settings, names: Sequence[str]) -> tuple[str, ...]:
    """Return the lists that were named, all where none was.

    Raises:
        SettingsError: there is no list of that name.
    """
    for name in names:
        if name not in settings.lists:
            near = difflib.get_close_matches(name, settings.lists, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise SettingsError("--list", name, f"{hint}there are: {', '.join(settings.lists)}")
    return tuple(names or settings.lists)


def check_month(option: str, month: str | None) -> None:
    """Refuse what is no month.

    Raises:
        SettingsError: it is not written YYYY-MM.
    """
    if month is not None and not is_month(month):
        raise SettingsError(option, month, 'must be a month such as "1997-01"')
