"""The account that runs the embedded server: our own, or another one where we are root.

Environment: `MAIL_PG_USER` names the account that root switches to.
"""

import os
import pwd
import subprocess
from pathlib import Path
from typing import NamedTuple, TypedDict

from mail_assets.postgres.errors import PostgresError


class SwitchArguments(TypedDict, total=False):
    """Keyword arguments of `subprocess.run` that change the account."""

    user: int
    group: int
    extra_groups: list[int]


class ServerAccount(NamedTuple):
    """The account that runs the server; `switch` is empty when it is our own."""

    uid: int
    gid: int
    switch: SwitchArguments

    def reaches(self, path: Path) -> bool:
        """Return whether the account can enter or execute `path`."""
        command = ["test", "-x", str(path)]
        return subprocess.run(command, cwd="/", **self.switch).returncode == 0


def server_account() -> ServerAccount:
    """Return our own account or, for root, the one to switch to: PostgreSQL refuses root.

    That is `MAIL_PG_USER`, else `postgres`, else `nobody`.

    Raises:
        PostgresError: root, and there is no such account.
    """
    if os.geteuid() != 0:
        return ServerAccount(os.geteuid(), os.getegid(), {})
    named = os.environ.get("MAIL_PG_USER")
    wanted = [named] if named else ["postgres", "nobody"]
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next((known[name] for name in wanted if name in known), None)
    if entry is None:
        raise PostgresError(
            f"PostgreSQL refuses root, and there is no account {' or '.join(wanted)}: "
            "set MAIL_PG_USER to one that exists"
        )
    uid, gid = entry.pw_uid, entry.pw_gid
    return ServerAccount(uid, gid, {"user": uid, "group": gid, "extra_groups": []})
