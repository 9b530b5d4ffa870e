"""series, patches: the versions of a patch and what became of it; the open patches of a list."""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import click

from mail_assets.cli.command import (
    complete_lists,
    day_of,
    examples,
    exit_if_closed,
    exit_with,
    json_lines_option,
    open_reading,
    pass_settings,
    plural,
    print_json,
    printable_line,
    read_message_id,
    select_published,
    source_line,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.reading.series import Change, SeriesPatchView, SeriesView


@click.command(
    epilog=examples(
        "mail-assets series 20240304090533.GE9223@solheim.example.org",
        "mail-assets series --ids ids.txt --json",
    )
)
@click.argument("message_id", required=False)
@click.option(
    "--ids",
    type=click.File("r", encoding="utf-8", lazy=True),
    metavar="FILE",
    help="Describe each mail of a file with a Message-ID a line; - is standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, or one a mail.")
@pass_settings
def series(settings: Settings, message_id: str | None, ids: IO[str] | None, as_json: bool) -> None:
    """Show the versions of a patch and what became of it.

    The id is that of any mail of it. Versions are joined by evidence that is shown: patch-id,
    change-id, a link by the author, title, changed lines. A state has the sentence that says so.
    Silent is a patch that nobody else has answered for 60 days: that is no consent.
    """
    from mail_assets.reading.series import describe_mails, read_series

    if (message_id is None) == (ids is None):
        raise click.UsageError("give either a Message-ID or --ids")
    with open_reading(settings, "series") as connection:
        if ids is not None:
            asked = [line.strip() for line in ids if line.strip(" <>\r\n")]
            wanted = [read_message_id(line) for line in asked]
            for line, one in zip(asked, describe_mails(connection, wanted), strict=True):
                if as_json:
                    print_json({**one, "message_id": line.strip("<>")})
                else:
                    click.echo(f"<{printable_line(line.strip('<>'))}>  {_summary(one)}")
            return
        wanted_id = read_message_id(message_id or "")
        found = read_series(connection, wanted_id)
        if found is None:
            exit_if_closed(connection, wanted_id)
            exit_with(f"{message_id} is no patch: no version and no series is known of it")
    if as_json:
        print_json(found.as_json())
        return
    for line in format_series(found, wanted_id):
        click.echo(line)


def _summary(one: dict[str, object]) -> str:
    shas, versions = one["shas"], one["versions"]
    assert isinstance(shas, list)
    assert isinstance(versions, list)
    known = f"{one['state']}, {plural(len(versions), 'version')}" if versions else "no patch"
    return f"{known}, {', '.join(shas)}" if shas else known


def format_series(found: "SeriesView", asked: str) -> Iterator[str]:
    """Yield the lines of a series: its postings, and each change with its versions and state."""
    yield click.style(printable_line(found.title) or "(no subject)", bold=True)
    for some in found.postings:
        first = some[0]
        patches = plural(sum(one.kind == "patch" for one in some), "patch", "patches")
        mark = "→ " if any(one.message_id == asked for one in some) else "  "
        yield f"{mark}v{first.version:<3} {day_of(first.sent_at)}  {_person(first)}, {patches}"
        yield click.style(f"        <{printable_line(first.message_id)}>", dim=True)
    for change in found.changes:
        yield ""
        yield from _format_change(change, asked)


def _format_change(change: "Change", asked: str) -> Iterator[str]:
    newest = change.newest
    what = "Cover letter: " if newest.kind == "cover" else ""
    yield click.style(f"{what}{printable_line(newest.title)}", bold=True)
    for one in change.versions:
        mark = "→ " if one.message_id == asked else "  "
        why = f" ({', '.join(one.evidence)})" if one.evidence else ""
        other = f", by {_person(one)}" if one.is_taken_over else ""
        yield f"{mark}{one.label}{why}{other}"
        yield click.style(f"        <{printable_line(one.message_id)}>", dim=True)
    yield from _format_state(change.deciding)


def _format_state(one: "SeriesPatchView") -> Iterator[str]:
    shas = f" as {', '.join(map(printable_line, one.shas))}" if one.shas else ""
    by = f", {_name(one.said_by)} on {day_of(one.said_at)}" if one.said and one.said_at else ""
    yield f"  {one.state}{shas}{by}"
    if one.committed_at:
        yield f"    committed by {_name(one.committer_name)} on {day_of(one.committed_at)}"
    if one.said:
        yield f"    {printable_line(' '.join(one.said.split()))}"
        yield source_line(one.reason_id or "")
    if one.doubt:
        yield f"    who says so {one.doubt}"


def _person(one: "SeriesPatchView") -> str:
    return printable_line(one.from_name or one.from_email)


def _name(name: str | None) -> str:
    return printable_line(name or "a program")


@click.command(epilog=examples("mail-assets patches --open --list harbor-dev"))
@click.option(
    "--open", "is_open", is_flag=True, help="Those that wait for an answer or a decision."
)
@click.option(
    "--list",
    "list_name",
    required=True,
    metavar="LIST",
    help="Which list.",
    shell_complete=complete_lists,
)
@json_lines_option
@pass_settings
def patches(settings: Settings, is_open: bool, list_name: str, as_json: bool) -> None:
    """List the open patches of a mailing list, newest first.

    A patch is open until a mail says that it was applied, refused or withdrawn, or a newer version
    takes its place. Silent ones have no answer for 60 days.
    """
    from mail_assets.reading.series import read_open

    if not is_open:
        raise click.UsageError("say which patches: --open")
    select_published(settings, (list_name,))
    with open_reading(settings, "patches") as connection:
        for change in read_open(connection, list_name):
            newest = change.newest
            if as_json:
                print_json(change.as_json())
            else:
                who, title = f"{_person(newest):<24.24}", printable_line(newest.title)
                day = day_of(newest.sent_at)
                click.echo(f"{day}  {newest.state:<6}  {newest.label:<9}  {who}  {title}")
