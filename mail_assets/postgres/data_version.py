"""Data that another major version of PostgreSQL has written, which no server but its own reads."""

from pathlib import Path

from mail_assets.postgres.cluster_paths import ClusterPaths
from mail_assets.postgres.errors import OldDataError

_REMEDY = """\
{data} was written by PostgreSQL {old}; {binaries} is PostgreSQL {new} and cannot read it.
`mail-assets upgrade` takes the data over and leaves the old ones as they are; it needs the \
programs of PostgreSQL {old} too. To stay with {old}, set MAIL_PG_BIN to the folder of these."""


def require_same_version(paths: ClusterPaths, binaries: Path) -> None:
    """Refuse to begin an empty cluster beside one that holds data of another major version.

    Raises:
        OldDataError: there is such data; the message has the command that takes it over.
    """
    old = find_old_data(paths)
    if old is not None:
        facts = {"old": old.name.removeprefix("pg"), "new": paths.major}
        raise OldDataError(_REMEDY.format(data=old, binaries=binaries, **facts))


def find_old_data(paths: ClusterPaths) -> Path | None:
    """Return the newest data directory of another version, None where there are data of this."""
    if (paths.data / "PG_VERSION").exists():
        return None
    others = [folder for folder in paths.root.glob("pg*") if _holds_data(folder)]
    return max(others, key=lambda folder: int(folder.name.removeprefix("pg")), default=None)


def _holds_data(folder: Path) -> bool:
    """Return whether a folder is a data directory under its own name: not set aside, not begun."""
    version = folder / "PG_VERSION"
    major = folder.name.removeprefix("pg")
    return major.isdigit() and version.exists() and version.read_text().strip() == major
