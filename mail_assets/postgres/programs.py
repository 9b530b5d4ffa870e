"""Run PostgreSQL's own programs (initdb, pg_ctl) as the account of the server."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mail_assets.postgres.account import ServerAccount
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.server_log import read_tail

#: With LC_CTYPE=C text search takes typographic quotes and dashes for letters, even with
#: the builtin provider; on macOS the postmaster dies without a valid LC_ALL.
LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"


@dataclass(frozen=True)
class Programs:
    """The programs in a directory of binaries, and the log that their output is added to."""

    folder: Path
    account: ServerAccount
    log: Path

    def run(self, program: str, *arguments: object) -> None:
        """Run a program.

        Its output never goes to a pipe: the postmaster inherits it, and its reader would wait for
        the server to end.

        Raises:
            PostgresError: it failed; the message ends with the log.
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        environment["LC_ALL"] = LOCALE
        with self.log.open("ab") as file:
            code = subprocess.run(
                [str(self.folder / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                env=environment,
                check=False,
                **self.account.switch,
            ).returncode
        if code:
            raise PostgresError(
                f"{program} failed ({code}); {self.log} ends:\n{read_tail(self.log)}"
            )
