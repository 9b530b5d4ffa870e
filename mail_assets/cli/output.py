"""Printing: JSON, tables and notes. Standard output carries the answer and nothing else."""

import json
import re
from collections.abc import Iterable, Sequence

import click

#: Mail is written by strangers: an escape sequence in it must not reach the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_json(value: object) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def print_note(text: str) -> None:
    """Print what is not the answer, on standard error."""
    click.echo(text, err=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows with aligned columns, numbers to the right; nothing where there are no rows.

    An empty header is left out.
    """
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


def printable(text: str) -> str:
    """Return text of a mail without control characters, but for line feeds and tabs."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def printable_line(text: str) -> str:
    """Return text of a mail on one line, without control characters."""
    return printable(" ".join(text.split()))


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count and its noun: "1 message", "2 messages"."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def _format_cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable_line(str(value))
