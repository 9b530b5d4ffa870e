"""Where a cluster keeps its files: all in one folder that the server's account can reach."""

import os
from dataclasses import dataclass
from pathlib import Path

from mail_assets.postgres.account import ServerAccount
from mail_assets.postgres.shared_folder import require_owner, shared_folder, short_digest

#: Fixed on purpose, unlike TMPDIR, which differs between a shell, a service and cron:
#: every process must come to the same path.
SHORT_FOLDER = Path("/tmp")

PORT = 5432  # only part of the socket's file name; no TCP port is opened

#: sun_path holds 108 bytes on Linux and 104 on macOS, and the socket's lock file adds
#: "/.s.PGSQL.5432.lock" to the directory.
MAX_SOCKET_PATH = 80


@dataclass(frozen=True)
class ClusterPaths:
    """The files of a cluster of one major version of PostgreSQL, below `root`."""

    root: Path
    major: int

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.root / f"pg{self.major}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.root / "postgres.log"

    @property
    def lock(self) -> Path:
        """The file that is locked while the server is started or stopped."""
        return self.root / ".lock"

    @property
    def socket_folder(self) -> Path:
        """The folder of the socket; outside `root` where its path is too long for a socket."""
        folder = self.root / "sock"
        # libpq and the server both take a comma for the end of a directory
        if len(os.fsencode(folder)) > MAX_SOCKET_PATH or "," in str(folder):
            return SHORT_FOLDER / f"mailpg-{os.geteuid()}-{short_digest(self.root)}"
        return folder


def reachable_paths(root: Path, major: int, account: ServerAccount) -> ClusterPaths:
    """Return the paths below `root`, or below `SHARED_FOLDER` where the account cannot reach it."""
    root = root.resolve()
    if account.switch:
        root.mkdir(parents=True, exist_ok=True)
        if not account.reaches(root):
            root = shared_folder() / f"data-{short_digest(root)}"
            root.mkdir(exist_ok=True)
            root.chmod(0o755)
    return ClusterPaths(root, major)


def make_private(path: Path, account: ServerAccount) -> None:
    """Make `path` a directory that only the server's account can enter."""
    path.mkdir(mode=0o700, exist_ok=True)
    require_owner(path, {account.uid, os.geteuid()})
    path.chmod(0o700)
    os.chown(path, account.uid, account.gid)
