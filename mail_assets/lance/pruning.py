"""Delete the old versions of all tables of a place, those included that no upkeep looks at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lancedb.table import Table

from mail_assets.lance.conflicts import run_between_writers
from mail_assets.lance.connection import LanceConnection
from mail_assets.lance.errors import lance_errors
from mail_assets.lance.url import lance_location
from mail_assets.lance.versions import cleanup_age, count_old_versions


class OldVersions(NamedTuple):
    """Versions that no reader needs, and their bytes; None before they are gone, and on S3."""

    versions: int
    bytes: int | None


def clean_table(table: Table, label: str, errors: type[RuntimeError]) -> None:
    """Delete the versions of a table that no reader can be on, and compact it.

    LanceDB does both or neither.

    Raises:
        RuntimeError: of the kind `errors`, where writers kept interrupting; nothing is lost, run it
            again.
    """

    def clean() -> None:
        table.optimize(cleanup_older_than=cleanup_age(table))

    run_between_writers(clean, label, errors)


def prune_versions(
    url: str,
    clean: Callable[[Table, str], None],
    errors: type[RuntimeError],
    *,
    dry_run: bool = False,
) -> OldVersions:
    """Delete the versions that no reader can be on, of every table at a `lance:` URL.

    `clean` does it to one table, whose name for errors it is given too.

    Raises:
        RuntimeError: of the kind `errors`, where the tables cannot be listed; and what `clean`
            raises.
    """
    uri, options = lance_location(url.removeprefix("lance:"), os.environ)
    with lance_errors(f"lance:{uri}", errors):
        connection = LanceConnection(uri, options)
        names = connection.list_tables()
    tables = {name: connection.blocking.open_table(name) for name in names}
    old = {name: count for name, table in tables.items() if (count := count_old_versions(table))}
    if dry_run or not old:
        return OldVersions(sum(old.values()), None if old else 0)
    before = _folder_size(uri)
    for name in old:
        clean(tables[name], f"index {name} in {url}")
    after = _folder_size(uri)
    freed = None if before is None or after is None else max(0, before - after)
    return OldVersions(sum(old.values()), freed)


def _folder_size(uri: str) -> int | None:
    """Return the bytes of all files of a folder, None of a place on S3."""
    if "://" in uri:
        return None
    return sum(path.stat().st_size for path in Path(uri).rglob("*") if path.is_file())
