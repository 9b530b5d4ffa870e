"""What every command shares: its settings, its examples, its errors and its exit codes."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import NoReturn

import psycopg

from mail_assets.cli.output import print_note
from mail_assets.settings.environment import load_settings
from mail_assets.settings.errors import SettingsError
from mail_assets.settings.folders import blame_folder

#: Exit codes: something failed or there is nothing of that name; a wrong argument or setting.
FAILED, WRONG_INPUT = 1, 2


def examples(*command_lines: str) -> str:
    """Return the end of a command's help: its examples, one a line."""
    title = "Example:" if len(command_lines) == 1 else "Examples:"
    # \b: click keeps the lines of this paragraph as they are
    return "\n".join(["\b", title, *(f"  {line}" for line in command_lines)])


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an expected error of a command into a line and an exit code.

    Expected are the errors of this project, of the database and of the system: their text says
    what is wrong. Any other is a fault of the program and keeps its traceback.
    """

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # `| head`: click ends quietly
            raise
        except Exception as error:
            if not _is_expected(error):
                raise
            exit_with(_message(error), WRONG_INPUT if _is_wrong_input(error) else FAILED)

    return run


def pass_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Pass the settings to a command, and report its errors and theirs."""

    @report_errors
    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        settings = load_settings()
        try:
            command(settings, *args, **kwargs)
        except OSError as error:
            raise blame_folder(settings, error) or error from None

    return run


def exit_with(message: str, code: int = FAILED) -> NoReturn:
    """Print an error on standard error and end the process with an exit code."""
    print_error(message)
    sys.exit(code)


def print_error(message: str) -> None:
    """Print an error on standard error, with the program's name in front."""
    print_note(f"mail-assets: {message}")


def _message(error: Exception) -> str:
    text = str(error)
    return " ".join(text.split()) if isinstance(error, psycopg.Error) else text


def _is_expected(error: Exception) -> bool:
    ours = type(error).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours or isinstance(error, psycopg.Error | OSError)


def _is_wrong_input(error: Exception) -> bool:
    from mail_assets.answers.excerpts import BudgetError
    from mail_assets.search.request import MissingMessageError, RequestError
    from mail_assets.steps.vector_index import BucketError

    wrong = isinstance(error, SettingsError | BucketError | BudgetError | RequestError)
    return wrong and not isinstance(error, MissingMessageError)
