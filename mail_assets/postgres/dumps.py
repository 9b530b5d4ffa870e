"""Whole databases as files: PostgreSQL's own pg_dump and pg_restore, in the custom format.

Both run as this process's account: they are clients. pg_dump reads servers of its own version and
of older ones.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.postgres.binaries import find_bindir
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import LOCALE


def dump_database(dsn: str, file: Path, snapshot: str = "") -> None:
    """Write a database to a file, as the transaction sees it that exported `snapshot`.

    Raises:
        PostgresError: pg_dump failed.
    """
    options = [f"--snapshot={snapshot}"] if snapshot else []
    run_client("pg_dump", dsn, ["--format=custom", f"--file={file}", *options])


def restore_database(dsn: str, file: Path) -> None:
    """Replace what is in a database by a dump of another, in one transaction.

    Raises:
        PostgresError: pg_restore failed, and nothing was changed.
    """
    options = ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction"]
    run_client("pg_restore", dsn, [*options, str(file)])


def run_client(
    program: str, dsn: str, arguments: Sequence[str], file: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a client program on a database; its output goes to `file` where one is given.

    The password goes by the environment, which other accounts cannot see.

    Raises:
        PostgresError: it failed; the message has what it said.
    """
    place = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    password = place.pop("password", "")
    environment = os.environ | {"LC_ALL": LOCALE}
    if password:
        environment["PGPASSWORD"] = password
    command = [str(find_bindir() / program), f"--dbname={make_conninfo(**place)}", *arguments]
    with (file or Path(os.devnull)).open("w") as output:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )
    if done.returncode:
        raise PostgresError(f"{program} failed ({done.returncode}): {done.stderr.strip()}")
    return done
