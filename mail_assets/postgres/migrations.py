"""Numbered migrations: sql/001_NAME.sql, 002_..., applied once, in order, recorded.

What does not live here: named statements (statements.py), whose files have no number.
"""

import hashlib
import re
from pathlib import Path
from typing import LiteralString, NamedTuple

import psycopg

from mail_assets.errors import MailAssetsError
from mail_assets.postgres.statements import SQL, statement

_FILE = re.compile(r"(\d{3})_(\w+)\.sql")

#: Any number will do, so long as nothing else in the database takes the same lock.
_LOCK = 0x6D61696C

_TABLE = """
create table if not exists schema_migrations (
    number      integer primary key,
    name        text not null,
    sha256      text not null,
    applied_at  timestamptz not null default now()
)"""

#: By these a table schema_migrations is ours: Rails, Ecto and others have one of that name too.
_COLUMNS = {"number", "name", "sha256"}

_OPTION = "options=-csearch_path%3D"


class MigrationError(MailAssetsError):
    """The database and the files in sql/ do not belong together."""


class Migration(NamedTuple):
    """One file of sql/."""

    number: int
    name: str
    text: LiteralString

    @property
    def sha256(self) -> str:
        """Return the digest that is recorded when the migration is applied."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations(folder: Path = SQL) -> list[Migration]:
    """Return the migrations of a folder in order; numbers run from 1 without gaps.

    Raises:
        MigrationError: a number is missing or stands twice.
    """
    found = [
        Migration(int(match[1]), match[2], path.read_text(encoding="utf-8"))
        for path in sorted(folder.iterdir())
        if (match := _FILE.fullmatch(path.name))
    ]
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise MigrationError(f"{folder}: migrations must be numbered 001, 002, ... without gaps")
    return found


def migrate(
    connection: psycopg.Connection, folder: Path = SQL, until: int | None = None
) -> list[Migration]:
    """Apply what is missing, up to the number `until` where one is given, and return it.

    Several processes may call this at once.

    All missing migrations are one transaction, under a lock that ends with it. Where none is
    missing nothing is locked or written: a user who may only read can connect.

    Raises:
        MigrationError: an applied migration was edited, the database is newer, or the schema that
            is first in the search path is not the one to migrate.
    """
    wanted = migrations(folder)
    last = len(wanted) if until is None else until
    if not any(one.number <= last for one in _missing(connection, wanted)):
        return []
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_TABLE)
        connection.execute(statement("migrations", "reach_trigrams"))
        missing = [one for one in _missing(connection, wanted) if one.number <= last]
        for migration in missing:
            connection.execute(migration.text)
            connection.execute(
                "insert into schema_migrations (number, name, sha256) values (%s, %s, %s)",
                (migration.number, migration.name, migration.sha256),
            )
    return missing


def _missing(connection: psycopg.Connection, wanted: list[Migration]) -> list[Migration]:
    """Return what the database lacks; see `migrate` for what it raises."""
    if not _is_installed(connection):
        return wanted
    applied: dict[int, str] = dict(
        connection.execute("select number, sha256 from schema_migrations").fetchall()
    )
    if applied and max(applied) > len(wanted):
        raise MigrationError(
            f"the database has migration {max(applied)}, this version of mail_assets knows "
            f"{len(wanted)}: update mail_assets"
        )
    for migration in wanted:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise MigrationError(
                f"sql/{migration.number:03}_{migration.name}.sql was changed after it was "
                "applied: restore it and add a new migration"
            )
    return [m for m in wanted if m.number not in applied]


def _is_installed(connection: psycopg.Connection) -> bool:
    """Return whether the first schema of the search path, where tables are made, has ours.

    Raises:
        MigrationError: there is none, another program has its migrations there, or only a schema
            behind it has our tables, which would be used in place of those of the first.
    """
    path = connection.execute(statement("migrations", "search_path")).fetchall()
    if not path:
        raise MigrationError(
            "the search path has no schema that exists and that this user may use: create one "
            f"(create schema mail_assets) and name it in MAIL_PG_DSN ({_OPTION}mail_assets)"
        )
    (schema, columns), *behind = path
    if columns and not {*columns} >= _COLUMNS:
        raise MigrationError(
            f"the schema {schema} has the migrations of another program (its table "
            "schema_migrations): give mail_assets one of its own (create schema mail_assets) and "
            f"name it first in MAIL_PG_DSN ({_OPTION}mail_assets)"
        )
    for other, its in behind if not columns else []:
        if {*its} >= _COLUMNS:
            raise MigrationError(
                f"the tables of mail_assets are in the schema {other}, and {schema} comes before "
                f"it in the search path: to use them, name {other} first in MAIL_PG_DSN "
                f"({_OPTION}{other}); to begin anew in {schema}, leave {other} out for the first "
                f"start ({_OPTION}{schema})"
            )
    return bool(columns)
