"""Dump a schema of a database to a file and restore it, with pg_dump, pg_restore and psql.

The schema is the first one in the search path, which has our tables. Other schemas may belong to
other programs; they are neither dumped nor replaced. The programs run under this process's account.
pg_dump supports servers of its own version and of older ones.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.environment import child_environment
from mail_assets.postgres.programs import LOCALE, PostgresError, find_bindir
from mail_assets.postgres.statements import statement

#: Extensions that our tables, indexes and functions use, if a server has them.
EXTENSIONS = ("pg_trgm", "vector")

#: A setting that pg_restore writes since version 17; servers of 15 or 16 would refuse the dump.
_UNKNOWN = b"SET transaction_timeout"
#: A line that follows this setting in every dump, before any data of rows.
_PATH = b"SELECT pg_catalog.set_config('search_path'"


class _Place(NamedTuple):
    """The location of tables: a server (identified by its start time), a database, a schema."""

    server: str
    database: str
    schema: str


def find_distinct(databases: Mapping[str, str]) -> dict[str, str]:
    """Return DSNs by name; of several names for one database, keep the first."""
    names: dict[_Place, str] = {}
    for name, dsn in databases.items():
        names.setdefault(_find_place(dsn), name)
    return {name: databases[name] for name in names.values()}


def dump_database(dsn: str, file: Path, snapshot: str = "", without: Sequence[str] = ()) -> None:
    """Write the schema of a database to a file, without the tables in `without`.

    With `snapshot` the dump has the rows visible to the transaction that exported the snapshot.

    Raises:
        PostgresError: pg_dump failed.
    """
    schema = _quote(_find_place(dsn).schema)
    options = ["--format=custom", f"--file={file}", f"--schema={schema}"]
    # plpgsql always exists; pg_dump fails if no extension matches
    options.append("--extension=" + "|".join(["plpgsql", *EXTENSIONS]))
    options += [f"--exclude-table={schema}.{_quote(table)}" for table in without]
    if snapshot:
        options.append(f"--snapshot={snapshot}")
    place, environment = _address(dsn)
    done = subprocess.run(
        [str(find_bindir() / "pg_dump"), f"--dbname={place}", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise PostgresError(f"pg_dump failed ({done.returncode}): {done.stderr.strip()}")


def check_dump(file: Path) -> None:
    """Check that pg_restore can read a dump.

    Raises:
        PostgresError: it cannot read the dump.
    """
    _list_contents(file)


def restore_database(dsn: str, file: Path, before: str = "") -> None:
    """Replace the schema of a database by the one in a dump, in one transaction.

    The transaction starts with the statement `before`.

    Raises:
        PostgresError: the dump has only other schemas, or the restore failed; nothing was changed.
    """
    schema = _find_place(dsn).schema
    contents = _list_contents(file)
    if " TABLE " in contents and f" TABLE {schema} " not in contents:
        raise PostgresError(
            f"{file} has no table of the schema {schema}: create the schema that was dumped, and "
            "name it first in the search path of the database (options=-csearch_path%3D...)"
        )
    named = re.findall(r" EXTENSION - (\S+)", contents)
    needed = sql.Literal([name for name in EXTENSIONS if name in named])
    extensions = sql.SQL(statement("dumps", "create_extensions")).format(names=needed)
    begin = [
        "begin",
        "set local client_min_messages = warning",
        extensions.as_string(),
        *filter(None, [before]),
    ]
    options = ["--clean", "--if-exists", "--no-owner", "--no-privileges", f"--schema={schema}"]
    _execute(dsn, ";\n".join(begin) + ";\n", [*options, str(file)])


def _find_place(dsn: str) -> _Place:
    try:
        with psycopg.connect(dsn) as connection:
            row = connection.execute(statement("dumps", "place")).fetchone()
    except psycopg.OperationalError as error:
        raise PostgresError(f"the database cannot be reached: {error}") from error
    if row is None or row[2] is None:
        raise PostgresError("the search path of the database has no schema that exists")
    return _Place(*row)


def _quote(name: str) -> str:
    """Return a pattern for pg_dump that matches only this name."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _list_contents(file: Path) -> str:
    command = [str(find_bindir() / "pg_restore"), "--list", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PostgresError(f"pg_restore failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout


def _execute(dsn: str, begin: str, options: Sequence[str]) -> None:
    """Run the output of pg_restore in psql, in the transaction that `begin` starts.

    The commit is sent only after a complete dump, because psql also ends without an error if its
    input breaks off.
    """
    folder, (place, environment) = find_bindir(), _address(dsn)
    settings = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            [str(folder / "pg_restore"), "--file=-", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
        ) as dump,
        subprocess.Popen(
            [str(folder / "psql"), f"--dbname={place}", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
        ) as session,
    ):
        assert dump.stdout is not None
        assert session.stdin is not None
        with suppress(BrokenPipeError):  # psql failed; its output has the reason
            session.stdin.write(begin.encode())
            session.stdin.writelines(_known_settings(dump.stdout))
            shutil.copyfileobj(dump.stdout, session.stdin, 1 << 20)
            if dump.wait() == 0:
                session.stdin.write(b"\ncommit;\n")
        with suppress(BrokenPipeError):
            session.stdin.close()
        dump.stdout.close()
        if session.wait() or dump.wait():
            said.seek(0)
            raise PostgresError(f"the restore failed: {said.read().decode(errors='replace')}")


def _known_settings(dump: IO[bytes]) -> Iterator[bytes]:
    """Yield the first lines of a dump, without the setting that older servers do not know."""
    for line in dump:
        if not line.startswith(_UNKNOWN):
            yield line
        if line.startswith(_PATH):
            return


def _address(dsn: str) -> tuple[str, dict[str, str]]:
    """Return the connection string and the environment for a client program.

    The password is in the environment, which other accounts cannot see.
    """
    place = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    password = place.pop("password", "")
    environment = child_environment(LC_ALL=LOCALE)
    if password:
        environment["PGPASSWORD"] = password
    return make_conninfo(**place), environment
