"""Judged queries that a command is given: two files, or the folder of MAIL_QUALITY_SET."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.evaluation.judged import JudgedQuery, JudgedSet

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_OPTIONS = (
    click.option(
        "--queries", type=_FILE, help='One {"_id", "text"} a line. Default: of MAIL_QUALITY_SET.'
    ),
    click.option("--qrels", type=_FILE, help="Query id, message id and grade, separated by tabs."),
    click.option(
        "--min-relevant",
        type=click.IntRange(min=1),
        help="Leave out queries with fewer relevant messages; default: 3, and 1 where no query of "
        "the set has two.",
    ),
)


def judged_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --queries, --qrels and --min-relevant to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_judged_queries(
    settings: Settings, queries: Path | None, qrels: Path | None, min_relevant: int | None
) -> "list[JudgedQuery] | None":
    """Read the judged queries that the options name, else those of the settings, if any.

    Raises:
        click.UsageError: one file without the other.
        RequestError: a file is wrong, or no query is left.
    """
    from mail_assets.evaluation.judged import read_judged, read_judged_set

    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels go together")
    if queries is not None and qrels is not None:
        return read_judged(queries, qrels, min_relevant)
    return read_judged_set(settings.quality_set, min_relevant) if settings.quality_set else None


def read_named_set(written: str, lists: tuple[str, ...], min_relevant: int | None) -> "JudgedSet":
    """Read a set written as "LIST=FOLDER", or "FOLDER" that is asked of `lists`.

    Raises:
        click.UsageError: the folder lacks one of the files.
        RequestError: a file is wrong, or no query is left.
    """
    from mail_assets.evaluation.judged import QRELS, QUERIES, JudgedSet, read_judged_set

    name, _, path = written.rpartition("=")
    folder = Path(path)
    for file in (QUERIES, QRELS):
        if not (folder / file).is_file():
            raise click.UsageError(f"--set {written}: {folder / file} is no file")
    return JudgedSet(folder.name, (name,) if name else lists, read_judged_set(folder, min_relevant))
