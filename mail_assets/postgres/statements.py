"""Read named statements from sql/, and apply the schema with its numbered migrations.

sql/NAME.sql has the statements of the table or module of that name. Each begins with a line
`-- name: NAME`; comment lines below that line belong to the statement. Only SQL that must run
before there are tables is in Python.

A database without tables gets sql/schema.sql, which is migration 0, and then sql/001_NAME.sql,
002_... in order, each once. The table schema_migrations has the applied ones.
"""

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg import sql

from mail_assets.errors import MailAssetsError
from mail_assets.files import sql_folder

SQL = sql_folder()

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def statement(file: str, name: str) -> LiteralString:
    """Return the statement `name` of sql/`file`.sql.

    The text is constant and part of this package, as LiteralString requires.
    """
    try:
        return _statements(file)[name]
    except KeyError:
        raise KeyError(f"sql/{file}.sql has no statement named {name}") from None


@functools.cache
def _statements(file: str) -> dict[str, LiteralString]:
    _, *pieces = _NAME.split((SQL / f"{file}.sql").read_text(encoding="utf-8"))
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


Query = LiteralString | sql.Composed


def read_value(
    connection: psycopg.Connection, query: Query, parameters: Mapping[str, Any] | None = None
) -> Any:
    """Return the first value of the first row, None if there is no row."""
    row = connection.execute(query, parameters).fetchone()
    return row[0] if row else None


def read_column(
    connection: psycopg.Connection, query: Query, parameters: Mapping[str, Any] | None = None
) -> list[Any]:
    """Return the first value of each row."""
    return [row[0] for row in connection.execute(query, parameters).fetchall()]


T = TypeVar("T")


def read_as(
    connection: psycopg.Connection,
    make: Callable[..., T],
    query: Query,
    parameters: Mapping[str, Any] | None = None,
) -> list[T]:
    """Call `make` with the columns of each row; return the results."""
    return [make(*row) for row in connection.execute(query, parameters).fetchall()]


#: Rows in one COPY.
ROWS_AT_A_TIME = 1_000


def copy_rows(connection: psycopg.Connection, query: Query, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows with COPY, in batches: `rows` may read from the same connection."""
    left = iter(rows)
    while some := [*islice(left, ROWS_AT_A_TIME)]:
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            for row in some:
                copy.write_row(row)


@contextmanager
def planned_once(connection: psycopg.Connection) -> Iterator[None]:
    """Use generic plans within the block, on a connection of a search.

    Use it for statements that read rows by keys: planning takes longer than running them. Other
    statements are planned for their values. In a pipeline, PostgreSQL resets the setting after an
    error.
    """
    connection.execute("set plan_cache_mode = force_generic_plan")
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.execute("set plan_cache_mode = force_custom_plan")


T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@dataclass(frozen=True)
class Pending(Generic[T_co]):
    """The result of a statement that was sent in a pipeline.

    `read` returns it. Call it after the pipeline has ended: within the pipeline, the first read
    costs an additional round trip.
    """

    read: Callable[[], T_co]

    @staticmethod
    def known(value: U) -> "Pending[U]":
        """Return a result that needs no statement."""
        return Pending(lambda: value)

    def then(self, convert: Callable[[T_co], U]) -> "Pending[U]":
        """Return a result to which `convert` is applied when it is read."""
        return Pending(lambda: convert(self.read()))


_FILE = re.compile(r"(\d{3})_(\w+)\.sql")

#: Key of the advisory lock for migrations.
_LOCK = 0x6D61696C

#: Columns of our table schema_migrations; Rails, Ecto and others have a table of this name too.
_COLUMNS = {"number", "name", "sha256"}

_OPTION = "options=-csearch_path%3D"

_REFILL = (
    "fill it again: `mail-assets down --delete-data` and `mail-assets backfill`, or, on a server "
    "of your own, name an empty database in MAIL_PG_DSN"
)


class MigrationError(MailAssetsError):
    """The database and the files in sql/ do not belong together."""


class Migration(NamedTuple):
    """A file that is applied once; number 0 is the schema."""

    number: int
    file: str
    text: LiteralString

    @property
    def name(self) -> str:
        """Return the recorded name, without number and suffix."""
        return self.file.removesuffix(".sql").removeprefix(f"{self.number:03}_")

    @property
    def sha256(self) -> str:
        """Return the recorded digest."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations(folder: Path = SQL) -> list[Migration]:
    """Return the schema and the migrations of a folder, in the order of their numbers 0, 1, ..."""
    numbered = {
        path: int(match[1])
        for path in sorted(folder.iterdir())
        if (match := _FILE.fullmatch(path.name))
    }
    if [*numbered.values()] != [*range(1, len(numbered) + 1)]:
        raise MigrationError(f"{folder}: migrations must be numbered 001, 002, ... without gaps")
    files = {folder / "schema.sql": 0, **numbered}
    return [
        Migration(number, path.name, path.read_text(encoding="utf-8"))
        for path, number in files.items()
    ]


def migrate(
    connection: psycopg.Connection, folder: Path = SQL, until: int | None = None
) -> list[Migration]:
    """Apply and return the missing migrations, up to the number `until` if given.

    They are applied in one transaction under an advisory lock, so that several processes may call
    this at the same time. If none is missing, nothing is locked or written, so that a user who may
    only read can connect.

    Raises:
        MigrationError: an applied file was edited; the database is newer, or older than
            sql/schema.sql; or the first schema of the search path cannot have our tables.
    """
    known = migrations(folder)
    last = known[-1].number if until is None else until
    if not any(one.number <= last for one in _missing(connection, known)):
        return []
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        missing = [one for one in _missing(connection, known) if one.number <= last]
        connection.execute(statement("migrations", "reach_trigrams"))
        for migration in missing:
            try:
                connection.execute(migration.text)
            except psycopg.errors.DuplicateTable as error:
                raise MigrationError(
                    f"sql/{migration.file} cannot be applied: {error.diag.message_primary}; give "
                    "mail_assets a schema of its own (create schema mail_assets) and name it first "
                    f"in MAIL_PG_DSN ({_OPTION}mail_assets)"
                ) from error
            connection.execute(_RECORD, (migration.number, migration.name, migration.sha256))
    return missing


def find_altered_objects(connection: psycopg.Connection) -> list[str]:
    """Return the tables, columns, indexes, functions and triggers that differ from sql/.

    All files are applied to a separate schema, which is compared and then rolled back.

    Raises:
        psycopg.errors.InsufficientPrivilege: this user may not create a schema.
    """
    with connection.transaction(force_rollback=True):
        schema = str(connection.execute(statement("migrations", "schema")).fetchone()[0])  # type: ignore[index]
        found = _objects(connection, schema)
        connection.execute(statement("migrations", "reach_trigrams"))
        connection.execute(statement("migrations", "create_model"))
        for migration in migrations():
            connection.execute(migration.text)
        wanted = _objects(connection, MODEL)
        trigrams = connection.execute(statement("damage", "lacks_trigrams")).fetchone()
    there = {name for kind, name, _ in found if kind in ("table", "view")}
    whole = {name for kind, name, _ in wanted if kind in ("table", "view")} - there
    missing = [
        f"{kind} {name}"
        for kind, name, _ in sorted(wanted - found)
        if name in whole or not _is_of(name, whole)
    ]
    return [*missing, *(["extension pg_trgm"] if trigrams == (True,) else [])]


def _is_of(name: str, tables: Collection[str]) -> bool:
    """Return whether a column, index, trigger or constraint belongs to one of some tables."""
    return any(name.startswith((f"{table}.", f"{table}_")) for table in tables)


def _objects(connection: psycopg.Connection, schema: str) -> set[tuple[str, str, str]]:
    return {*connection.execute(statement("damage", "objects"), {"schema": schema}).fetchall()}


#: A schema that exists only within one transaction.
MODEL = "mail_assets_model"

#: Starts of statements that fail if the object exists, and replacements that do not.
_REPEATABLE = {
    r"create table ": "create table if not exists ",
    r"create index ": "create index if not exists ",
    r"create unique index ": "create unique index if not exists ",
    r"create function ": "create or replace function ",
    r"create view ": "create or replace view ",
    r"create trigger ": "create or replace trigger ",
}


def mend_schema(connection: psycopg.Connection, replaceable: Collection[str]) -> None:
    """Create missing parts of the schema, and replace its functions and triggers.

    A table that lacks columns is replaced by an empty one if it is `replaceable`.

    Raises:
        MigrationError: a table lacks columns, and its rows cannot be recomputed.
    """
    for name in find_altered_objects(connection):
        kind, _, place = name.partition(" ")
        table = place.partition(".")[0]
        if kind not in ("column", "index", "constraint") or not _exists(connection, table):
            continue
        if kind == "index":
            connection.execute(sql.SQL("drop index {}").format(sql.Identifier(table)))
        elif table in replaceable:
            connection.execute(sql.SQL("drop table {} cascade").format(sql.Identifier(table)))
        else:
            raise MigrationError(
                f"{kind} {place} is missing, and nothing here can make the rows of {table} again: "
                "restore a backup into an empty database"
            )
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(statement("migrations", "reach_trigrams"))
        for migration in migrations():
            text = migration.text
            for create, repeat in _REPEATABLE.items():
                text = re.sub(rf"^( *){create}", rf"\1{repeat}", text, flags=re.MULTILINE)
            connection.execute(text.encode())
            connection.execute(_RECORD, (migration.number, migration.name, migration.sha256))


def _exists(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute("select to_regclass(quote_ident(%s))", (name,)).fetchone()
    return row is not None and row[0] is not None


_RECORD = (
    "insert into schema_migrations (number, name, sha256) values (%s, %s, %s) "
    "on conflict do nothing"
)


def _missing(connection: psycopg.Connection, known: list[Migration]) -> list[Migration]:
    if not _is_installed(connection):
        return known
    applied: dict[int, str] = dict(
        connection.execute("select number, sha256 from schema_migrations").fetchall()
    )
    if 0 not in applied:
        raise MigrationError(
            f"the database {connection.info.dbname} was made by a version of mail_assets before "
            f"0.2.0 and cannot be converted; {_REFILL}"
        )
    newest = known[-1].number
    if max(applied) > newest:
        raise MigrationError(
            f"the database has migration {max(applied)}, this version of mail_assets knows "
            f"{newest}: update mail_assets"
        )
    for migration in known:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise MigrationError(
                f"sql/{migration.file} was changed after it was applied to the database "
                f"{connection.info.dbname}: restore it and add a new migration, or {_REFILL}"
            )
    return [m for m in known if m.number not in applied]


def _is_installed(connection: psycopg.Connection) -> bool:
    """Return whether our tables are in the first schema of the search path.

    Raises:
        MigrationError: the path has no schema, the first one has migrations of another program, or
            only a later one has our tables.
    """
    path = connection.execute(statement("migrations", "search_path")).fetchall()
    if not path:
        raise MigrationError(
            "the search path has no schema that exists and that this user may use: create one "
            f"(create schema mail_assets) and name it in MAIL_PG_DSN ({_OPTION}mail_assets)"
        )
    (schema, columns), *later = path
    if columns and not {*columns} >= _COLUMNS:
        raise MigrationError(
            f"the schema {schema} has the migrations of another program (its table "
            "schema_migrations): give mail_assets one of its own (create schema mail_assets) and "
            f"name it first in MAIL_PG_DSN ({_OPTION}mail_assets)"
        )
    for other, its in later if not columns else []:
        if {*its} >= _COLUMNS:
            raise MigrationError(
                f"the tables of mail_assets are in the schema {other}, and {schema} comes before "
                f"it in the search path: to use them, name {other} first in MAIL_PG_DSN "
                f"({_OPTION}{other}); to start with empty tables in {schema}, leave {other} out "
                f"for the first start ({_OPTION}{schema})"
            )
    return bool(columns)
