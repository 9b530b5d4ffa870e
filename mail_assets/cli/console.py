"""What every command shares: its settings, what it says where, and its exit codes."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING

import click
import psycopg

from mail_assets.month import is_month
from mail_assets.settings.environment import Settings, load_settings
from mail_assets.settings.errors import SettingsError

if TYPE_CHECKING:
    from mail_assets.search.searcher import Searcher
    from mail_assets.tables.indexes import IndexRecord

FAILED, WRONG = 1, 2


def say(text: str) -> None:
    """Say something that is not the answer, on standard error."""
    click.echo(text, err=True)


def answer_json(value: object) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Hand the settings to a command, and turn known errors into a line and an exit code.

    Known are the errors of this project, of the database and of the system: their text says
    what is wrong. Any other is a fault of the program and keeps its traceback.
    """

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        try:
            command(load_settings(), *args, **kwargs)
        except BrokenPipeError:  # `| head`: click ends quietly
            raise
        except Exception as error:
            if not _is_known(error):
                raise
            text = str(error)
            say(f"mail-assets: {' '.join(text.split()) if _is_database(error) else text}")
            sys.exit(WRONG if _is_wrong_input(error) else FAILED)

    return run


def known_lists(settings: Settings, names: Sequence[str]) -> tuple[str, ...]:
    """Return the lists asked for, all where none is.

    Raises:
        SettingsError: there is no list of that name.
    """
    for name in names:
        if name not in settings.lists:
            raise SettingsError("--list", name, f"there are: {', '.join(settings.lists)}")
    return tuple(names or settings.lists)


def searcher_of(
    settings: Settings, index: "IndexRecord | None" = None
) -> "AbstractContextManager[Searcher]":
    """Open a searcher over what the settings name: the live index, or the one given."""
    from mail_assets.search.open import SearchSettings, open_searcher

    asked = SearchSettings(
        settings.database,
        settings.vectors,
        index.encoder if index else settings.encoder,
        index.precision if index else settings.precision,
        settings.model_cache,
        settings.languages,
    )
    return open_searcher(asked, pinned=index is not None)


def check_month(option: str, month: str | None) -> None:
    """Refuse what is no month.

    Raises:
        SettingsError: it is not written YYYY-MM.
    """
    if month is not None and not is_month(month):
        raise SettingsError(option, month, 'must be a month such as "1997-01"')


def _is_known(error: Exception) -> bool:
    ours = type(error).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours or _is_database(error) or isinstance(error, OSError)


def _is_database(error: Exception) -> bool:
    return isinstance(error, psycopg.Error)


def _is_wrong_input(error: Exception) -> bool:
    from mail_assets.answers.excerpts import BudgetError
    from mail_assets.search.request import RequestError
    from mail_assets.steps.vector_index import BucketError

    return isinstance(error, SettingsError | BucketError | BudgetError | RequestError)
