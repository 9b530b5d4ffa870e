"""The folder where root keeps files that the account of the server can reach."""

import hashlib
import stat
from pathlib import Path

from mail_assets.postgres.errors import PostgresError

#: Not /var/tmp: systemd deletes what nobody touched there for 30 days, an old table's files among
#: it.
SHARED_FOLDER = Path("/var/lib/mail-assets")


def shared_folder() -> Path:
    """Return `SHARED_FOLDER`; root alone may write in it, everybody may enter it."""
    SHARED_FOLDER.mkdir(parents=True, exist_ok=True)
    require_owner(SHARED_FOLDER, {0})
    SHARED_FOLDER.chmod(0o755)
    return SHARED_FOLDER


def short_digest(*parts: object) -> str:
    """Return a short name for a path and what else tells it apart, equal in every process."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:10]


def require_owner(path: Path, owners: set[int]) -> None:
    """Refuse a link, or a directory that another user put there before us.

    Raises:
        PostgresError: root would otherwise give away what a link points to.
    """
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in owners:
        raise PostgresError(f"{path} exists and is not ours; remove it")
