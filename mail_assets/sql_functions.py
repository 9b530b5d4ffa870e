"""Install search as SQL functions in the mail database, for drivers and Supabase's RPC.

The functions are the templates of sql/functions/, filled with the constants of search and the
statements of sql/functions.sql. They return the same results as search in Python, except for the
differences listed in docs/sql.md.
"""

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from time import sleep
from typing import LiteralString

import psycopg
from psycopg import sql

from mail_assets.errors import MailAssetsError
from mail_assets.mail.message import text_addresses
from mail_assets.postgres.statements import SQL, statement
from mail_assets.search import fulltext, matches, query, semantic
from mail_assets.search.language import request
from mail_assets.tables.lists import record_lists
from mail_assets.text import words
from mail_assets.text.identifiers import SQLSTATE_CLASSES, VERSION
from mail_assets.text.letters import MARKS, UNSPACED, UNSPACED_LETTER
from mail_assets.vectors import pgvector

#: Templates in the order of their dependencies.
FILES = ("drop", "lists", "words", "fulltext", "semantic", "hybrid")
DROP_PUBLIC, PUBLIC = "drop_public", "public"
#: Attempts to lock a table that is in use, and the seconds between them.
TRIES, PAUSE = 20, 1.5
#: BM25's length normalisation, and the number of distinct lexemes of an average message.
B, PIVOT_SIZE = 0.75, 60
#: Weight of a word in the subject.
SUBJECT_WEIGHT = 4
#: Largest number of messages to rank; it bounds the cost of a search.
MAX_RANKED = 2_000
#: Largest number of messages to count for a lexeme that is not in PostgreSQL's statistics.
MAX_COUNTED = 5_000

#: Patterns of letters and of the end of a word, as in text/identifiers.py.
_ALNUM, _ALPHA = (f"(?:(?![{UNSPACED}])[[:{one}:]])" for one in ("alnum", "alpha"))
_END = rf"(?!(?![{UNSPACED}])\w)"
_PLACEHOLDER = re.compile(r"\{([a-z]\w*)\}")
_PARAMETER = re.compile(r"%\((\w+)\)s")


class PublicRoleError(MailAssetsError):
    """The role cannot get public read access."""


class PublicSchemaError(MailAssetsError):
    """mail_public shows the mail of another installation in this database."""


class TableInUseError(MailAssetsError):
    """A table that must be locked is always in use."""


def install_functions(
    connection: psycopg.Connection,
    languages: Mapping[str, str],
    *,
    vectors: bool = True,
    public: str | None = None,
) -> bool:
    """Install the functions in the schema of the tables, in one transaction; replace older ones.

    `languages` maps published lists to text search configurations. The role `public` gets access to
    the schema mail_public and nothing else; None empties that schema. `vectors` allows the use of
    pgvector. Return whether pgvector is used; without it, functions take a vector as text and
    report that pgvector is missing.

    Raises:
        PublicRoleError: there is no such role, or it can already read all mail.
        PublicSchemaError: `public` is given, and mail_public belongs to another installation.
        TableInUseError: a table was in use at each of the `TRIES`.
    """
    if public is not None:
        _check_role(connection, public)
    for _ in range(TRIES - 1):
        with contextlib.suppress(psycopg.errors.LockNotAvailable):
            return _install(connection, languages, vectors, public)
        sleep(PAUSE)
    try:
        return _install(connection, languages, vectors, public)
    except psycopg.errors.LockNotAvailable as error:
        raise TableInUseError(_name_users(connection)) from error


def _install(
    connection: psycopg.Connection, languages: Mapping[str, str], vectors: bool, public: str | None
) -> bool:
    with connection.transaction():
        connection.execute("set local client_min_messages = warning")
        connection.execute(statement("functions", "give_up_early"))
        record_lists(connection, languages)
        files = _files(connection, public)
        if vectors:
            connection.execute(_render("extension", {}))
        values = _template_values(connection, vectors, public or "")
        for file in files:
            connection.execute(_render(file, values))
    return values["embedding"] != "text"


def _files(connection: psycopg.Connection, public: str | None) -> Sequence[str]:
    """Return the templates to run; keep the public schema of another installation."""
    row = connection.execute(statement("functions", "public_schema")).fetchone()
    schema, is_ours = row or ("", True)
    if public is None:
        return (DROP_PUBLIC, *FILES) if is_ours else FILES
    if not is_ours:
        raise PublicSchemaError(
            f"mail_public shows the mail of the schema {schema}, another installation in this "
            "database: remove that (mail-assets sql install with its settings, without --public), "
            "or use another database"
        )
    return (DROP_PUBLIC, *FILES, PUBLIC)


def _name_users(connection: psycopg.Connection) -> str:
    users = [
        f"{name} (process {pid}, for {since}: {tables})"
        for pid, name, since, tables in connection.execute(statement("functions", "in_use"))
    ]
    return (
        "tables that must be locked are in use; nothing was installed. Wait for these sessions or "
        f"end them: {'; '.join(users) or 'they have just ended; run this again'}"
    )


def _template_values(connection: psycopg.Connection, vectors: bool, public: str) -> dict[str, str]:
    """Return the values of the placeholders {name} in the templates."""
    schema, extension = connection.execute(statement("functions", "schemas")).fetchone() or (
        "",
        None,
    )
    others = (one for one in range(0x80, sys.maxunicode) if chr(one).isdecimal())
    signs = dict.fromkeys([*words.ASCII_SIGNS, *others])
    path = dict.fromkeys([schema, extension, "pg_temp"] if extension else [schema, "pg_temp"])
    return {
        "schema": _identifier(schema),
        "path": ", ".join(_identifier(name) for name in path),
        "role": _identifier(public),
        "role_name": sql.Literal(public).as_string(),
        "hints": sql.Literal(text_addresses.HINTS).as_string(),
        "disguises": sql.Literal(text_addresses.DISGUISES).as_string(),
        **{
            f"address_{name}": sql.Literal(pattern).as_string()
            for name, pattern in text_addresses.PATTERNS._asdict().items()
            if isinstance(pattern, str)
        },
        "address_forms": ", ".join(
            sql.Literal(form).as_string() for form in text_addresses.PATTERNS.forms
        ),
        "embedding": "halfvec" if vectors and extension else "text",
        "question": _in_plpgsql(statement("functions", "question")),
        "frequencies": _in_plpgsql(statement("functions", "frequencies")),
        "fulltext": _in_plpgsql(statement("functions", "fulltext")),
        "stems": re.sub(
            r"unnest\(.*\) as w",
            "(values (language, word)) as w",
            statement("search", "stems"),
        ),
        "unseen": words.UNSEEN,
        "wide_signs": sql.Literal("".join(map(chr, signs))).as_string(),
        "ascii_signs": sql.Literal("".join(map(words.clean_text, map(chr, signs)))).as_string(),
        "address": words.ADDRESS.replace("++", "+").replace("*+", "*"),
        "url": r"\m\w+://(?:[^\s/@<>\"]*@)?([^\s/<>\"?#:]*)([^\s<>\"]*)",
        "spaced": rf"(?![{UNSPACED}])[[:alnum:]](?:(?![{UNSPACED}])[[:alnum:]]|[{MARKS}])*",
        "sign": rf"(?:(?![{UNSPACED}])\w|[$+-])",
        "alnum": _ALNUM,
        "signed": rf"({_ALPHA}{_ALNUM}*(?:\+\+|#))(?:(?<=\+)[0-9]{_ALNUM}*)?{_END}(?![+#])",
        "leading": rf"(?<![.])\.(?:(?<!\w\.){_ALPHA}{_ALNUM}*|[A-Z]{{2,}}){_END}",
        "capital": rf"\.[A-Z]{_ALNUM}*{_END}",
        "widths": words.WIDTHS,
        "version": VERSION,
        "unspaced": UNSPACED,
        "max_length": str(words.MAX_LENGTH),
        "sqlstates": SQLSTATE_CLASSES,
        "letter": UNSPACED_LETTER,
        "marks": MARKS,
        "max_limit": str(request.MAX_LIMIT),
        "max_query": str(request.MAX_QUERY),
        "k1": str(fulltext.K1),
        "b": str(B),
        "pivot": str(PIVOT_SIZE),
        "subject": str(SUBJECT_WEIGHT),
        "name": str(query.IDENTIFIER_SHARE),
        "piece": str(query.PIECE_SHARE),
        "candidates": str(MAX_RANKED),
        "depth": str(fulltext.FULLTEXT_DEPTH),
        "counted": str(MAX_COUNTED),
        "semantic_depth": str(semantic.SEMANTIC_DEPTH),
        "nearly": str(matches.NEARLY),
        "exact_rows": str(pgvector.EXACT_ROWS),
        "ef_search": str(pgvector.EF_SEARCH),
    }


def _render(file: str, values: Mapping[str, str]) -> LiteralString:
    text = (SQL / "functions" / f"{file}.sql").read_text(encoding="utf-8")
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _in_plpgsql(text: str) -> str:
    """Return a named statement with its parameters as fields of the record `given`."""
    return _PARAMETER.sub(r"given.\1", text)


def _identifier(name: str) -> str:
    return sql.Identifier(name).as_string()


def _check_role(connection: psycopg.Connection, role: str) -> None:
    row = connection.execute(statement("functions", "can_read_all"), {"role": role}).fetchone()
    if row is None:
        raise PublicRoleError(f"there is no role {role}: create it first (create role ... nologin)")
    if row[0]:
        raise PublicRoleError(
            f"the role {role} can already read all mail: use another one for the public"
        )
