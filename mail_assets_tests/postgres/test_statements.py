"""Each named statement can be found, is used, and is understood by PostgreSQL."""

import ast
import re
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import mail_assets
from mail_assets.forgetting.remove_list import LAST, MANIFESTS, TABLES
from mail_assets.postgres.statements import SQL, statement
from mail_assets.search.filters import MessageFilter, read_condition
from mail_assets.tables.checks import STATEMENTS as CHECK_STATEMENTS
from mail_assets.tables.kept_rows import KEPT
from mail_assets.tables.removed_messages import HIDE_STATEMENTS

FILES = sorted(
    path.stem for path in SQL.glob("*.sql") if not re.match(r"schema\.|\d{3}_", path.name)
)
PACKAGE = Path(mail_assets.__file__).parent

#: Of a whole list, by one function.
DAMAGE = (
    "messages", "entries", "quarantined", "removed", "wrong_senders", "wrong_archives", "chunks",
    "patches", "commits",
)  # fmt: skip

STAGED = ("messages", "threads", "chunks", "patches", "commits", "commit_links")
#: What EXPLAIN takes, after the comments.
PLANNED = re.compile(r"(--.*\n)*\(?(select|insert|update|delete|with)\b")
#: Values for parameters that are looked up while planning; null does for the others.
EXAMPLES = {"table": "messages", "language": "simple"}


def names(file: str) -> list[str]:
    text = (SQL / f"{file}.sql").read_text(encoding="utf-8")
    return re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)


def texts(file: str) -> list[tuple[str, str]]:
    """Return the names and texts of a file's statements, those of manifests for both."""
    found = []
    for name in names(file):
        text = statement(file, name)
        for table in ("vectors", "words") if "{manifest}" in text else ("",):
            asset = sql.Literal(table).as_string()
            found.append((name, text.replace("{manifest}", table).replace("{asset}", asset)))
    return found


def test_a_statement_ends_where_the_next_begins() -> None:
    assert statement("threads", "snapshot").endswith("isolation level repeatable read")


def test_an_unknown_statement_is_named() -> None:
    with pytest.raises(KeyError, match=r"sql/threads\.sql has no statement named nothing"):
        statement("threads", "nothing")


@pytest.mark.parametrize("file", FILES)
def test_names_are_unique_in_a_file(file: str) -> None:
    assert len(names(file)) == len(set(names(file))) > 0


def calls() -> set[tuple[str, str]]:
    """Return the (file, name) of every call of `statement` in the package; "*" is a variable."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="statement"), args=[file, name]):
                    found.add((_constant(file), _constant(name)))
                case ast.Call(func=ast.Attribute(attr="statement"), args=[name]):
                    if path.parent.name == "search":  # MessageFilter.statement
                        found.add(("search", _constant(name)))
    return found


def _constant(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "*"


MANIFEST_STATEMENTS = (
    *("read_keys", "mark_intended", "mark_written", "mark_lost", "drop_keys", "remove_keys"),
    *("count_keys", "count_by_month", "complete_vectors", "complete_words"),
)

#: What is asked of a backup by one function, and of each of its tables by another.
BACKUP_STATEMENTS = (*KEPT, *("stage", "merge", "index_again", "forget_index_states"))


#: Statements of patch_series whose names stand in variables.
SERIES_STATEMENTS = (
    *("before", "after", "outcomes_of", "outcomes_about", "copy", "copy_outcomes", "copy_keys"),
    *("discard_rows", "hide_in_rows", "discard_outcomes", "hide_in_outcomes"),
)


def test_statements_are_used_and_exist() -> None:
    written = {(file, name) for file in FILES for name in names(file)}
    used = {(file, name) for file, name in calls() if "*" not in (file, name)}
    assert used <= written
    manifests = {"vectors", "words"}
    by_variable = {
        *(("browsing", name) for name in ("rows_recorded", "rows_mbox_archives")),
        *(("indexes", name) for name in MANIFEST_STATEMENTS),
        *(("reconcile", f"{what}_{one}") for what in ("expect", "intend") for one in manifests),
        *(("search", name) for name in ("newest", "by_id", "page_copies", "page_chunks")),
        *(("kept_rows", name) for name in BACKUP_STATEMENTS),
        *(("filters", name) for name in names("filters")),  # put together by search/filters.py
        *(("checks", name) for name in CHECK_STATEMENTS.values()),
        *(("damage", name) for name in DAMAGE),
        *(("removed_messages", name) for name in HIDE_STATEMENTS),
        *(("patch_series", name) for name in SERIES_STATEMENTS),
        *(("commit_links", f"commits_of_{asset}") for asset in ("month", "patches", "messages")),
        *(("remove_list", f"delete_{table}") for table in TABLES),
        *(("remove_list", name) for name in (*MANIFESTS, *LAST)),
        *(("exports", name) for name in ("newest", "newest_of_list", "newest_of_month")),
    }
    assert written - used == by_variable


#: COPY, and what makes the staging tables or sets something: the tests of their modules run them.
UNPLANNED = (
    *("stage", "copy", "analyze_stage", "snapshot", "analyze", "give_up_early"),
    *("create_extensions", "copy_entries", "copy_outcomes", "copy_keys", "create_model"),
)

# reconcile stages one table out of another, functions has a table of its own, kept_rows takes the
# names of tables, event_log asks Dagster's database; their own tests run every statement
APART = {"filters", "reconcile", "functions", "kept_rows", "event_log"}


@pytest.mark.parametrize("file", [file for file in FILES if file not in APART])
def test_postgres_understands_every_statement(migrated: psycopg.Connection, file: str) -> None:
    conditions = tuple(map(read_condition, names("filters")))
    every = MessageFilter(conditions, {})
    whole = [(name, every.statement(name)) for name in names(file)] if file == "search" else []
    for name, text in whole or texts(file):
        parameters = {key: EXAMPLES.get(key) for key in re.findall(r"%\((\w+)\)s", text)}
        with migrated.transaction(force_rollback=True):
            for table in STAGED:
                migrated.execute(statement(table, "stage"))
            if PLANNED.match(text):
                migrated.execute(sql.SQL("explain {}").format(sql.SQL(text)), parameters or None)
            else:
                assert name in UNPLANNED
