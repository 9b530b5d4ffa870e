"""Run PostgreSQL's own programs (initdb, pg_ctl, pg_isready) as the account of the server."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mail_assets.postgres.account import ServerAccount
from mail_assets.postgres.errors import PostgresError

#: With LC_CTYPE=C text search takes typographic quotes and dashes for letters, even with
#: the builtin provider; on macOS the postmaster dies without a valid LC_ALL.
LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"

#: Lines of the log that an error quotes.
TAIL = 15


@dataclass(frozen=True)
class Programs:
    """The programs in a directory of binaries, and the log that their output is added to."""

    folder: Path
    account: ServerAccount
    log: Path

    def run(self, program: str, *arguments: object) -> None:
        """Run a program.

        Raises:
            PostgresError: it failed; the message ends with the log.
        """
        code = self._call(program, arguments, self.log)
        if code:
            lines = self.log.read_text(errors="replace").splitlines(True)
            tail = "".join(lines[-TAIL:])
            raise PostgresError(f"{program} failed ({code}); {self.log} ends:\n{tail}")

    def exit_code(self, program: str, *arguments: object) -> int:
        """Run a program that answers by its exit code; what it prints is dropped."""
        return self._call(program, arguments, Path(os.devnull))

    def _call(self, program: str, arguments: tuple[object, ...], output: Path) -> int:
        """Never write to a pipe: the postmaster inherits it, and its reader waits for the server
        to end.
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        environment["LC_ALL"] = LOCALE
        with output.open("ab") as file:
            return subprocess.run(
                [str(self.folder / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                env=environment,
                check=False,
                **self.account.switch,
            ).returncode
