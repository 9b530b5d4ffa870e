"""Search as functions of the mail database, for who asks it through SQL or Supabase's RPC.

They are the files of sql/functions/, with this room's numbers and the statements of
sql/search.sql in them, so that they find what search here finds; docs/sql.md says in what they
differ. What does not live here: SQL, and who calls this (cli/sql.py).
"""

import re
from collections.abc import Mapping
from typing import LiteralString

import psycopg
from psycopg import sql

from mail_assets.postgres.statements import SQL, statement
from mail_assets.search import fulltext, request, semantic
from mail_assets.search.filters import Limits
from mail_assets.text.identifiers import SQLSTATE_CLASSES
from mail_assets.vectors.pgvector import index as pgvector

#: In the order of their needs.
FILES = ("drop", "lists", "words", "fulltext", "semantic", "hybrid")
PUBLIC = "public"

_PLACE = re.compile(r"\{([a-z]\w*)\}")
_PARAMETER = re.compile(r"%\((\w+)\)s")


class PublicRoleError(RuntimeError):
    """A role that cannot be given public read: says which, and why."""


def install(
    connection: psycopg.Connection,
    languages: Mapping[str, str],
    *,
    vectors: bool = True,
    public: str | None = None,
) -> bool:
    """Install the functions in the schema of the tables, in one transaction; replace older ones.

    `languages` maps lists to text search configurations. The role `public` gets the schema
    mail_public and nothing else; where it is None, that schema is emptied. `vectors` says that
    pgvector may be used. Returns whether it is there: else functions that take a vector take it
    as text, and say what is missing.

    Raises:
        PublicRoleError: there is no such role, or it may read everything anyway.
    """
    if public is not None:
        _check_role(connection, public)
    files = (*FILES, PUBLIC) if public is not None else FILES
    with connection.transaction():
        connection.execute("set local client_min_messages = warning")
        if vectors:
            connection.execute(_render("extension", {}))
        parts = _parts(connection, vectors, public or "")
        for file in files:
            connection.execute(_render(file, parts))
            if file == "lists":
                _write_languages(connection, languages)
    return parts["embedding"] != "text"


def _parts(connection: psycopg.Connection, vectors: bool, public: str) -> dict[str, str]:
    """Return what stands for each {name} in the files."""
    schema, extension = connection.execute(statement("functions", "place")).fetchone() or ("", None)
    path = dict.fromkeys([schema, extension, "pg_temp"] if extension else [schema, "pg_temp"])
    passes = Limits(("lists", "after", "before"), {}, (), whole=True)
    return {
        "schema": _identifier(schema),
        "path": ", ".join(_identifier(name) for name in path),
        "role": _identifier(public),
        "role_name": sql.Literal(public).as_string(),
        "embedding": "halfvec" if vectors and extension else "text",
        "question": _in_plpgsql(statement("search", "question")),
        "frequencies": _in_plpgsql(statement("search", "frequencies")),
        "fulltext": _in_plpgsql(passes.statement("fulltext")),
        "sqlstates": SQLSTATE_CLASSES,
        "max_limit": str(request.MAX_LIMIT),
        "max_query": str(request.MAX_QUERY),
        "k1": str(fulltext.K1),
        "b": str(fulltext.B),
        "pivot": str(fulltext.PIVOT),
        "subject": str(fulltext.SUBJECT),
        "name": str(fulltext.NAME),
        "piece": str(fulltext.PIECE),
        "candidates": str(fulltext.CANDIDATES),
        "depth": str(fulltext.DEPTH),
        "counted": str(fulltext.COUNTED),
        "semantic_depth": str(semantic.ALONE),
        "exact_rows": str(pgvector.EXACT_ROWS),
        "ef_search": str(pgvector.EF_SEARCH),
    }


def _render(file: str, parts: Mapping[str, str]) -> LiteralString:
    """Return a file with its parts in it: our own text, quoted identifiers, numbers."""
    text = (SQL / "functions" / f"{file}.sql").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: parts[place[1]], text)


def _in_plpgsql(text: str) -> str:
    """Return a named statement with its parameters as fields of the record `given`."""
    return _PARAMETER.sub(r"given.\1", text)


def _identifier(name: str) -> str:
    return sql.Identifier(name).as_string()


def _write_languages(connection: psycopg.Connection, languages: Mapping[str, str]) -> None:
    connection.execute(statement("functions", "forget_languages"))
    given = {"lists": [*languages], "languages": [*languages.values()]}
    connection.execute(statement("functions", "languages"), given)


def _check_role(connection: psycopg.Connection, role: str) -> None:
    row = connection.execute(statement("functions", "reads_anyway"), {"role": role}).fetchone()
    if row is None:
        raise PublicRoleError(f"there is no role {role}: create it first (create role ... nologin)")
    if row[0]:
        raise PublicRoleError(
            f"the role {role} may read all mail anyway: use another for the public"
        )
