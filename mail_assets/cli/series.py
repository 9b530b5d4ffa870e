"""The commands `series`, `patches` and `interdiff`: versions and states of patches."""

import re
from collections.abc import Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    complete_lists,
    day_of,
    examples,
    exit_if_closed,
    exit_with,
    json_lines_option,
    json_option,
    name_apart,
    name_sender,
    open_reading,
    pass_settings,
    plural,
    print_json,
    printable,
    printable_line,
    read_message_id,
    select_published,
    source_line,
)
from mail_assets.settings.settings import Settings
from mail_assets.text.lookalikes import find_lookalikes

if TYPE_CHECKING:
    import psycopg

    from mail_assets.mail.patches.interdiff import PatchComparison, Version
    from mail_assets.reading.series import Change, SeriesPatchView, SeriesView

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
#: Characters of a name in a table.
_NAME = 24
_NUMBER = click.IntRange(1, 100_000)


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
    help="Describe the mails of a file with one Message-ID per line; - is standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, or one per mail.")
@pass_settings
def series(settings: Settings, message_id: str | None, ids: IO[str] | None, as_json: bool) -> None:
    """Show the versions of a patch and what became of it.

    MESSAGE_ID may be any mail of the patch or series. The evidence that joins the versions is
    shown: patch-id, change-id, a link by the author, title, changed lines. Each state comes with
    the sentence that states it. A patch is silent if nobody but the author has replied for 60 days;
    this does not mean consent.
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
    """Yield the lines for a series: its postings, and each change with its versions and state."""
    alike = found.namesakes
    yield click.style(printable_line(found.title) or "(no subject)", bold=True)
    for some in found.postings:
        first = some[0]
        patches = plural(sum(one.kind == "patch" for one in some), "patch", "patches")
        mark = "→ " if any(one.message_id == asked for one in some) else "  "
        who = name_apart(first, alike)
        yield f"{mark}v{first.version:<3} {day_of(first.sent_at)}  {who}, {patches}"
        yield click.style(f"        <{printable_line(first.message_id)}>", dim=True)
    for change in found.changes:
        yield ""
        yield from _format_change(change, asked, alike)


def _format_change(change: "Change", asked: str, alike: Collection[str]) -> Iterator[str]:
    newest = change.newest
    what = "Cover letter: " if newest.kind == "cover" else ""
    yield click.style(f"{what}{printable_line(newest.title)}", bold=True)
    for one in change.versions:
        mark = "→ " if one.message_id == asked else "  "
        why = f" ({', '.join(one.evidence)})" if one.evidence else ""
        other = f", by {name_apart(one, alike)}" if one.is_taken_over else ""
        other += ", contested id" if one.is_contested else ""
        yield f"{mark}{one.label}{why}{other}"
        yield click.style(f"        <{printable_line(one.message_id)}>", dim=True)
    yield from _format_state(change.deciding, alike)


def _format_state(one: "SeriesPatchView", alike: Collection[str]) -> Iterator[str]:
    shas = f" as {', '.join(map(printable_line, one.shas))}" if one.shas else ""
    address = f" <{printable_line(one.said_from or '')}>" if one.said_by in alike else ""
    by = (
        f", {_name(one.said_by)}{address} on {day_of(one.said_at)}"
        if one.said and one.said_at
        else ""
    )
    yield f"  {one.state}{shas}{by}"
    if one.committed_at:
        yield f"    committed by {_name(one.committer_name)} on {day_of(one.committed_at)}"
    if one.said:
        yield f"    {printable_line(' '.join(one.said.split()))}"
        yield source_line(one.reason_id or "")
    if one.doubt:
        yield f"    the person who says so {one.doubt}"


def _name(name: str | None) -> str:
    return printable_line(name or "a program")


@click.command(epilog=examples("mail-assets patches --open --list harbor-dev"))
@click.option(
    "--open", "is_open", is_flag=True, help="Patches that wait for a reply or a decision."
)
@click.option(
    "--list",
    "list_name",
    required=True,
    metavar="LIST",
    help="The list of the patches.",
    shell_complete=complete_lists,
)
@json_lines_option
@pass_settings
def patches(settings: Settings, is_open: bool, list_name: str, as_json: bool) -> None:
    """List the open patches of a mailing list, newest first.

    A patch is open until a mail says that it was applied, rejected or withdrawn, or until a newer
    version replaces it. It is silent if nobody but the author has replied for 60 days.
    """
    from mail_assets.reading.series import read_open

    if not is_open:
        raise click.UsageError("give --open")
    select_published(settings, (list_name,))
    with open_reading(settings, "patches") as connection:
        changes = [*read_open(connection, list_name)]
    if as_json:
        for change in changes:
            print_json(change.as_json())
        return
    shown = [change.newest for change in changes]
    alike = find_lookalikes((one.from_name, one.from_email.lower()) for one in shown)
    for one in shown:
        who = name_apart(one, alike) if one.from_name in alike else name_sender(one)[:_NAME]
        day, title = day_of(one.sent_at), printable_line(one.title)
        click.echo(f"{day}  {one.state:<6}  {one.label:<9}  {who:<{_NAME}}  {title}")


@click.command(
    epilog=examples(
        "mail-assets interdiff 20240308-crane-v2-1@example.org",
        "mail-assets interdiff 20240308-crane-v2-1@example.org --from 1 --to 3",
        "mail-assets interdiff 20240308-crane-v2-1@example.org --applied",
        "mail-assets interdiff 20240301-crane-v1-1@example.org 20240308-crane-v2-1@example.org",
        "mail-assets interdiff 20240308-crane-v2-1@example.org 4e646fa490ba --git crane",
    )
)
@click.argument("old")
@click.argument("new", required=False)
@click.option("--from", "old_version", type=_NUMBER, help="Number of the older version.")
@click.option("--to", "new_version", type=_NUMBER, help="Number of the newer version.")
@click.option("--applied", is_flag=True, help="Compare a patch with the commits that it became.")
@click.option(
    "--git",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="A checkout that has the commits; default: this folder.",
)
@json_option
@pass_settings
def interdiff(
    settings: Settings,
    old: str,
    new: str | None,
    old_version: int | None,
    new_version: int | None,
    applied: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Show what changed between two versions of a patch or series.

    With one Message-ID, it is compared with the version before it in its series, or the versions
    with the numbers --from and --to are compared. With --applied, it (or version --from) is
    compared with the commits that it became in the repositories of lists.toml.

    OLD and NEW are Message-IDs of mails with one or more patches, or of cover letters, which stand
    for the patches that reply to them. A commit id (7 digits or more) is looked up in the checkout
    and in the repositories of lists.toml.

    If one of these repositories has the files that the patches change, git range-diff compares
    them. Otherwise mail_assets compares the diffs.

    Each line begins with two signs. The first tells which version has the line: - the old one, +
    the new one, a blank both. The second is the sign of the line in its patch. The author's notes
    on the new version come first, after a bar.
    """
    from mail_assets.mail.patches.interdiff import format_comparison
    from mail_assets.reading.patches import compare_versions, find_applied, find_version
    from mail_assets.reading.series import find_numbered

    numbered = (old_version, new_version) != (None, None)
    if new is not None and (numbered or applied):
        raise click.UsageError("give NEW, or --from and --to, or --applied")
    if applied and new_version is not None:
        raise click.UsageError("--applied takes --from alone")
    folders = _find_folders(settings, folder)
    with open_reading(settings, "interdiff") as connection:
        if applied:
            name = read_message_id(old)
            if old_version is not None:
                name = find_numbered(connection, name, old_version)
            before = _read(settings, connection, name, folders)
            after = [find_version(folders, sha) for sha in find_applied(connection, before)]
        else:
            names = _name_pair(connection, old, new, old_version, new_version)
            before, after = (_read(settings, connection, one, folders) for one in names)
    found = compare_versions(before, after, folders)
    if as_json:
        by = {"by": "mail_assets" if found.why_not_git else "git range-diff"}
        why = {"why_not_git": found.why_not_git or None}
        print_json({**by, **why, "patches": [_record(one) for one in found.patches]})
    else:
        click.echo(printable(format_comparison(found.patches)), nl=False)


def _name_pair(
    connection: "psycopg.Connection",
    old: str,
    new: str | None,
    old_version: int | None,
    new_version: int | None,
) -> tuple[str, str]:
    from mail_assets.reading.patches import find_previous
    from mail_assets.reading.series import find_pair

    if new is not None:
        return old, new
    if _SHA.fullmatch(old):
        raise click.UsageError("name a mail too: a commit alone has no version before it")
    name = read_message_id(old)
    if (old_version, new_version) != (None, None):
        return find_pair(connection, name, old_version, new_version)
    return find_previous(connection, name), name


def _find_folders(settings: Settings, folder: Path) -> list[Path]:
    from mail_assets.sources.repository import GitFolder

    kept = (
        GitFolder.kept(name, one.source, one.branch, settings.source_cache)
        for name, one in settings.repositories.items()
    )
    found = [GitFolder.around(folder), *kept]
    return [*dict.fromkeys(one.folder for one in found if one)]


def _read(
    settings: Settings, connection: "psycopg.Connection", name: str, folders: list[Path]
) -> "list[Version]":
    from mail_assets.reading.patches import find_version, read_versions
    from mail_assets.store.open import open_store

    if _SHA.fullmatch(name):
        return [find_version(folders, name.lower())]
    return read_versions(connection, open_store(settings.store), read_message_id(name))


def _record(one: "PatchComparison") -> dict[str, Any]:
    return {
        "title": one.title,
        "state": one.state,
        "old": _version_name(one.old),
        "new": _version_name(one.new),
        "changelog": one.changelog,
        "files": [asdict(file) for file in one.files],
        "range_diff": [*one.by_git],
    }


def _version_name(version: "Version | None") -> dict[str, str] | None:
    if version is None:
        return None
    return {
        "name": version.name,
        "message_id": version.message_id,
        "title": version.title,
        "patch_id": version.patch_id,
    }
