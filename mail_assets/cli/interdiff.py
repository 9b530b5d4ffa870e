"""interdiff: what changed between two versions of a patch or series."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    examples,
    json_option,
    open_reading,
    pass_settings,
    print_json,
    printable,
    read_message_id,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    import psycopg

    from mail_assets.mail.patches.interdiff import PatchComparison, Version

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


@click.command(
    epilog=examples(
        "mail-assets interdiff 20240308-crane-v2-1@example.org",
        "mail-assets interdiff 20240301-crane-v1-1@example.org 20240308-crane-v2-1@example.org",
        "mail-assets interdiff 20240308-crane-v2-1@example.org 4e646fa490ba --git crane",
    )
)
@click.argument("old")
@click.argument("new", required=False)
@click.option(
    "--git",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The checkout that has the commits; default: this folder.",
)
@json_option
@pass_settings
def interdiff(settings: Settings, old: str, new: str | None, folder: Path, as_json: bool) -> None:
    """Show what changed between two versions of a patch or series.

    With one Message-ID: between it and the version before it in its series.

    OLD and NEW are Message-IDs: of patches, of mails with several, or of cover letters, for the
    patches that answer them. A commit's id (7 digits or more) is read from a checkout: what was
    applied, compared with what was mailed.

    A line has two signs. The first says which version has it: - the old one, + the new one, none
    both. The second is that of the line in its patch. What the author says of the new version
    stands above, after a bar.
    """
    from mail_assets.mail.patches.interdiff import compare_series, format_comparison
    from mail_assets.reading.patches import find_previous

    with open_reading(settings, "interdiff") as connection:
        if new is None:
            old, new = find_previous(connection, read_message_id(old)), old
        before, after = (_read(settings, connection, one, folder) for one in (old, new))
    found = compare_series(before, after)
    if as_json:
        print_json({"patches": [_record(one) for one in found]})
    else:
        click.echo(printable(format_comparison(found)), nl=False)


def _read(
    settings: Settings, connection: "psycopg.Connection", name: str, folder: Path
) -> "list[Version]":
    from mail_assets.reading.patches import read_commit, read_versions
    from mail_assets.store.open import open_store

    if _SHA.fullmatch(name):
        return [read_commit(folder, name.lower())]
    return read_versions(connection, open_store(settings.store), read_message_id(name))


def _record(one: "PatchComparison") -> dict[str, Any]:
    return {
        "title": one.title,
        "state": one.state,
        "old": _name(one.old),
        "new": _name(one.new),
        "changelog": one.changelog,
        "files": [asdict(file) for file in one.files],
    }


def _name(version: "Version | None") -> dict[str, str] | None:
    if version is None:
        return None
    return {
        "name": version.name,
        "message_id": version.message_id,
        "title": version.title,
        "patch_id": version.patch_id,
    }
