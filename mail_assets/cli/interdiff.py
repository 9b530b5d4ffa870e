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
_NUMBER = click.IntRange(1, 100_000)


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
@click.option("--applied", is_flag=True, help="Compare with the commits that it became.")
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

    With one Message-ID: between it and the version before it in its series, or between the versions
    that --from and --to name by their numbers. With --applied: between it, or the version of
    --from, and the commits of the repositories in lists.toml that it became.

    OLD and NEW are Message-IDs: of patches, of mails with several, or of cover letters, for the
    patches that answer them. A commit's id (7 digits or more) is read from a checkout or from a
    repository of lists.toml.

    Where one of them has the files that the patches change, it is git range-diff that compares;
    else the diffs are compared here.

    A line has two signs. The first says which version has it: - the old one, + the new one, none
    both. The second is that of the line in its patch. What the author says of the new version
    stands above, after a bar.
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
        "old": _name(one.old),
        "new": _name(one.new),
        "changelog": one.changelog,
        "files": [asdict(file) for file in one.files],
        "range_diff": [*one.by_git],
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
