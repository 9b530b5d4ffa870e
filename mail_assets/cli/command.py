"""Shared parts of commands: the group, settings, errors, exit codes, options and printing.

Only results go to standard output; notes and errors go to standard error.
"""

import datetime as dt
import json
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import click
from click.shell_completion import CompletionItem

from mail_assets.cli import standby
from mail_assets.environment import VARIABLES
from mail_assets.errors import MailAssetsError, NotFoundError, WrongInputError, name_nearest
from mail_assets.files import find_full_disk, keep_files_private
from mail_assets.month import is_month
from mail_assets.settings.settings import (
    Settings,
    blame_folder,
    load_settings,
    read_home,
    shows_colour,
)
from mail_assets.settings.values import SettingsError
from mail_assets.settings.variables import STANDBY_MINUTES
from mail_assets.text.untrusted import TURNS

if TYPE_CHECKING:
    import psycopg

#: Exit codes: failure or not found; a wrong argument or setting.
FAILED, WRONG_INPUT = 1, 2
#: Width in characters to which sentences are wrapped.
_WIDTH = 88

#: Strangers write the mail. Escape sequences, and marks that change the direction of a line or end
#: it, must not reach the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MARKS = re.compile(f"[{TURNS}\u2028\u2029\U000e0000-\U000e007f]")


class HelpfulGroup(click.Group):
    """A group that suggests the nearest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            hint = name_nearest(name, known)
            said = f"there is no command {name[:40]!r}; {hint}there are: {', '.join(known)}"
            raise click.UsageError(said, ctx)
        return super().resolve_command(ctx, args)


class CommandGroup(HelpfulGroup):
    """A group that imports commands when they are called; `places`: name -> "MODULE:FUNCTION"."""

    def __init__(self, places: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None for an unknown name."""
        if cmd_name not in self._places:
            return None
        module, _, function = self._places[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"mail_assets.cli.{module}"), function)
        return command

    def main(  # type: ignore[override]  # click's overloads differ in what they return alone
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run a command line, by default that of this process; the standby process may run it."""
        if args is not None or sys.argv[1:2] == [] or sys.argv[1] not in standby.COMMANDS:
            return super().main(args, prog_name, **extra)
        given, program = sys.argv[1:], prog_name or Path(sys.argv[0]).name
        asked = None if {"-h", "--help"} & {*given} else _find_standby(program, given)
        if asked and (code := asked.run()) is not None:
            sys.exit(code)
        return super().main(given, program, obj=asked, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Set up logging, colours and the modes of new files, and run a command."""
        keep_files_private()
        logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
        if not shows_colour():
            ctx.color = False
        return super().invoke(ctx)


class _Standby(NamedTuple):
    """The standby process (socket, minutes, variables), and the command line for it to run."""

    socket: Path
    minutes: int
    environment: Mapping[str, str]
    program: str
    arguments: Sequence[str]

    def run(self) -> int | None:
        return standby.ask_standby(self.socket, self.program, self.arguments)


def hand_over() -> None:
    """Start the standby process, let it run this command from its beginning, and exit.

    Call it before anything is read from standard input. If there is no standby process, or it does
    not answer, the function returns and the command runs here.
    """
    asked = click.get_current_context().find_root().obj
    if isinstance(asked, _Standby):
        standby.start_standby(asked.socket, asked.minutes, asked.environment)
        if (code := asked.run()) is not None:
            sys.exit(code)


def _find_standby(program: str, arguments: Sequence[str]) -> _Standby | None:
    try:
        minutes = STANDBY_MINUTES.read(VARIABLES)
        socket = standby.find_socket(read_home(VARIABLES)) if minutes else None
    except (SettingsError, OSError):  # the command itself will report the error
        return None
    return _Standby(socket, minutes, {**VARIABLES}, program, arguments) if socket else None


def examples(*command_lines: str) -> str:
    """Return the end of a command's help: its examples, one per line."""
    title = "Example:" if len(command_lines) == 1 else "Examples:"
    # \b: click keeps the lines of this paragraph as they are
    return "\n".join(["\b", title, *(f"  {line}" for line in command_lines)])


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: print expected errors as a line and exit with their code.

    Errors of this project, of the database and of the system are expected; their text says what is
    wrong. Any other error is a bug and keeps its traceback.
    """

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # `| head`: click ends quietly
            raise
        except (MailAssetsError, OSError) as error:
            wrong = isinstance(error, WrongInputError) and not isinstance(error, NotFoundError)
            exit_with(str(error), WRONG_INPUT if wrong else FAILED)
        except Exception as error:
            if not _is_of_database(error):
                raise
            exit_with(" ".join(str(error).split()))

    return run


def _is_of_database(error: Exception) -> bool:
    """Return whether psycopg raised an error; False if psycopg was not imported."""
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.Error)


def pass_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: pass it the settings, and report errors of both."""

    @report_errors
    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        settings = load_settings()
        try:
            command(settings, *args, **kwargs)
        except Exception as error:
            if full := find_full_disk(error, [settings.home]):
                raise full from error
            if not isinstance(error, OSError):
                raise
            raise blame_folder(settings, error) or error from None

    return run


def exit_with(message: str, code: int = FAILED) -> NoReturn:
    """Print an error on standard error and end the process with an exit code."""
    print_error(message)
    sys.exit(code)


def complete_lists(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the lists of lists.toml that begin as typed; none if the settings are wrong."""
    try:
        names = load_settings().lists
    except (SettingsError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def lists_option(text: str) -> Callable[..., Any]:
    """Return the option --list, which may be repeated."""
    return click.option(
        "--list", "lists", multiple=True, metavar="LIST", help=text, shell_complete=complete_lists
    )


#: --json of a command that prints one object, and of one that prints many.
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line."
)


def refuse_empty(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Refuse an empty option, because it would silently have no effect."""
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty")
    return value


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


def read_filters(lists: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a search request that the filter options set."""
    from mail_assets.search.language.fields import parse_day

    return {
        "lists": lists,
        "after": parse_day(options["after"]) if options["after"] else None,
        "before": parse_day(options["before"]) if options["before"] else None,
        "sender": options["sender"] or "",
    }


def select_lists(settings: Settings, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named lists, or all lists if `names` is empty.

    Raises:
        SettingsError: a list is unknown.
    """
    for name in names:
        if name not in settings.lists:
            hint = name_nearest(name, settings.lists)
            raise SettingsError("--list", name, f"{hint}there are: {', '.join(settings.lists)}")
    return tuple(names or settings.lists)


def select_published(settings: Settings, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named lists, or all lists if `names` is empty; named ones must be published.

    Raises:
        SettingsError: a list is unknown or not published.
    """
    found = select_lists(settings, names)
    for name in names:
        if not settings.lists[name].published:
            rule = (
                "is not published: lists.toml says published = false, and no command shows its mail"
            )
            raise SettingsError("--list", name, rule)
    return found


@contextmanager
def open_reading(settings: Settings, role: str) -> "Iterator[psycopg.Connection]":
    """Open a connection that shows the mail of published lists, and of no others."""
    from mail_assets.tables.lists import show_lists

    with settings.database.connect(role) as connection:
        show_lists(connection, settings.languages)
        yield connection


def exit_if_closed(connection: "psycopg.Connection", message_id: str) -> None:
    """Exit with an error if a message is stored only in lists that are not published."""
    from mail_assets.tables.lists import find_closed_lists_of

    if names := find_closed_lists_of(connection, message_id):
        exit_with(
            f"message {message_id} is stored in {', '.join(names)}, not published: lists.toml does "
            "not name the list, or says published = false"
        )


def check_month(option: str, month: str | None) -> None:
    """Raise SettingsError if the month of an option is not written YYYY-MM."""
    if month is not None and not is_month(month):
        raise SettingsError(option, month, 'must be a month such as "1997-01"')


def read_message_id(text: str) -> str:
    """Return a Message-ID as it is stored, "" if no message can have it."""
    from mail_assets.mail.message.ids import normalize_id

    if not text.strip(" <>"):
        raise click.UsageError("the Message-ID is empty")
    return normalize_id(text)


def print_json(value: object) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def print_note(text: str) -> None:
    """Print a note on standard error; it may contain text of mail."""
    click.echo(printable(text), err=True)


def print_error(message: str) -> None:
    """Print an error on standard error, after the name of the program."""
    print_note(f"mail-assets: {message}")


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a table, numbers right-aligned; nothing without rows, no empty header."""
    from tabulate import tabulate

    rows = [[*row] for row in rows]
    if not rows:
        return
    align = ["right" if isinstance(value, int | float) else "left" for value in rows[0]]
    cells = [[_format_cell(value) for value in row] for row in rows]
    text = tabulate(
        cells, header, tablefmt="plain", disable_numparse=True, colalign=align, headersalign=align
    )
    first, *rest = (line.rstrip() for line in text.splitlines())
    click.secho(first, bold=bool(header))
    for line in rest:
        click.echo(line)


def _format_cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable_line(str(value))


def printable(text: str) -> str:
    """Return text of a mail without control characters and direction marks, but with LF and tab."""
    text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    return text if text.isascii() else _MARKS.sub("", text)


def printable_line(text: str) -> str:
    """Return text of a mail on one line, without control characters."""
    return printable(" ".join(text.split()))


class _Sent(Protocol):
    @property
    def from_name(self) -> str: ...
    @property
    def from_email(self) -> str: ...


def name_sender(mail: _Sent) -> str:
    """Return the name or address of the sender of a mail."""
    return printable_line(mail.from_name or mail.from_email) or "unknown sender"


def name_apart(mail: _Sent, alike: Collection[str]) -> str:
    """Return the name of a sender, with the address if its name is in `alike`."""
    name, address = name_sender(mail), printable_line(mail.from_email)
    return f"{name} <{address}>" if address and mail.from_name in alike else name


def wrap(text: str) -> str:
    """Return a sentence wrapped to _WIDTH characters; words and addresses stay whole."""
    indent = "  " if text.startswith("- ") else ""
    return fill(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def wrap_statement(label: str, text: str) -> str:
    """Return a wrapped statement of a mail; each item of a list begins a line."""
    from mail_assets.text.sentences import join_lines

    return "\n".join(map(wrap, f"{label}: {printable(join_lines(text))}".split("\n")))


def source_line(message_id: str, *about: str) -> str:
    """Return the dimmed line below a sentence: facts about its mail, and the Message-ID."""
    return click.style(f"    {', '.join([*about, f'<{printable_line(message_id)}>'])}", dim=True)


def day_of(moment: dt.datetime) -> str:
    """Return the day of a moment, in UTC."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d}"


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count and its noun: "1 message", "2 messages"."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def shows_progress() -> bool:
    """Return whether standard error is a terminal on which a display can be redrawn."""
    return sys.stderr.isatty() and shows_colour()
