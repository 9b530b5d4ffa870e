"""A statement about a month reads only that month, unless its comment says that it reads all."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.statements import statement
from mail_assets.tables.partitions import look_up_by_index
from mail_assets_tests.databases import database_name, drop_database, new_database
from mail_assets_tests.postgres.many_months import (
    CHUNKS,
    INDEX,
    KNOWN,
    MESSAGES,
    MONTHS,
    NEW,
    NEW_INDEX,
    fill_known,
    fill_new,
    month_values,
)
from mail_assets_tests.postgres.test_statements import FILES, PLANNED, STAGED, texts

#: Those of search read what a query finds, or a sample (see search/test_plans.py), reconcile
#: compares a whole index, kept_rows is of backups, event_log reads tables of Dagster's, damage
#: reads all of a list.
APART = {"search", "search_patches", "filters", "functions", "answer", "reconcile", "kept_rows",
         "event_log", "damage"}  # fmt: skip

#: Asked once for a page or a run, not for each month: before the first analyze they may read all.
ONCE = {"commit_links", "conversations", "decisions", "exports", "threads", "thread_summaries"}
ONCE_OF_BROWSING = {
    *("months", "newest_month", "newest_id", "near_ids", "known_ids"),
    *("neighbours", "list_neighbours", "only_read"),
}

#: Of steps whose transactions read by indexes, also before the first analyze.
BY_INDEX = {"patch_series"}

#: Of a month that is made again, which was filled before.
OF_REBUILDS = {"mend_senders"}

#: Tables with a row or a few for each month: their sums are cheaper than keeping them.
OF_MONTHS = {"partitions", "mbox_archives", "quarantine", "removals", "removed_messages",
             "cut_messages", "former_archives", "removed_upstream",
             "month_checks", "commit_link_months", "commit_link_sources",
             "encoded_texts"}  # fmt: skip # a cache of bounded size

#: Rows that a statement about a month may read of a table. A month has 60 chunks in 7,200, its
#: threads 8 times its messages. A row that is looked up by its month reads 30 x 30.
MOST = 8 * MESSAGES + CHUNKS * MESSAGES

#: Blocks of 8 kB that it may read, of tables and indexes: an entry of an index that it passes over
#: is no row. To insert a row takes 15.
BLOCKS, MOST_BLOCKS = "blocks", 15 * CHUNKS * MESSAGES

#: What a statement says of itself that reads more, and why it may.
DECLARED = "-- Whole corpus: "

EXAMPLES: dict[str, Any] = {
    "text": "x", "text[]": ["x"], "integer": 1, "bigint": 1, "smallint": 0, "boolean": True,
    "bytea": b"x", "bytea[]": [b"x"], "jsonb": "{}", "integer[]": [1], "boolean[]": [True],
    "jsonb[]": '{"[\\"a\\"]"}', "timestamp with time zone[]": "{2024-03-04}",
    "json": '["1"]', "timestamp with time zone": "2024-03-04",
    "smallint[]": [0], "bigint[]": [1], "double precision": 1.0, "double precision[]": [1.0],
    "interval": "1 day", "regconfig": "simple", "regclass": "messages",
}  # fmt: skip


PARAMETER_TYPES = "select parameter_types::text[] from pg_prepared_statements where name = %s"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def known(cluster: Cluster, mail_template: str) -> Iterator[str]:
    """The name of a database of many months."""
    dsn = new_database(cluster, mail_template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        fill_known(connection)
    yield database_name(dsn)
    drop_database(cluster, dsn)


@pytest.fixture(scope="module")
def many(cluster: Cluster, known: str) -> Iterator[psycopg.Connection]:
    """A connection to a database of many months, the last of which is new."""
    with opened_months(cluster, known, analyzed=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def fresh(cluster: Cluster, known: str) -> Iterator[psycopg.Connection]:
    """A connection to a database of many months that was never analyzed."""
    with opened_months(cluster, known, analyzed=False) as connection:
        yield connection


@contextmanager
def opened_months(cluster: Cluster, known: str, *, analyzed: bool) -> Iterator[psycopg.Connection]:
    dsn = new_database(cluster, known)
    with psycopg.connect(dsn, autocommit=True) as connection:
        fill_new(connection, analyzed=analyzed)
        yield connection
    drop_database(cluster, dsn)


def read_rows(connection: psycopg.Connection, text: str, values: dict[str, Any]) -> Counter[str]:
    """Run a statement; return how many rows it read of each table, found or not, and BLOCKS."""
    parameters = [*dict.fromkeys(re.findall(r"%\((\w+)\)s", text))]
    for number, name in enumerate(parameters, 1):
        text = text.replace(f"%({name})s", f"${number}")
    asked = f"asked_{next(NUMBERS)}"
    body = sql.SQL(text.replace("%%", "%"))
    connection.execute(sql.SQL("prepare {} as {}").format(sql.Identifier(asked), body))
    types = connection.execute(PARAMETER_TYPES, [asked]).fetchone()
    arguments = [
        sql.Literal(values.get(name, EXAMPLES.get(kind)))
        for name, kind in zip(parameters, types[0] if types else [], strict=True)
    ]
    call = sql.SQL("({})").format(sql.SQL(", ").join(arguments)) if arguments else sql.SQL("")
    explain = sql.SQL("explain (analyze, buffers, timing off, format json) execute {}{}")
    plan = connection.execute(explain.format(sql.Identifier(asked), call)).fetchone()
    found = Counter[str]()
    root = plan[0][0]["Plan"] if plan else {}
    count_rows(root, found)
    if not found.keys() & OF_MONTHS:
        found[BLOCKS] = root["Shared Hit Blocks"] + root["Shared Read Blocks"]
    return found


def count_rows(node: dict[str, Any], found: Counter[str]) -> None:
    """Add the rows that a plan read of each table, found or not."""
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        rows = node["Actual Rows"] + sum(node.get(name, 0) for name in removed)
        found[node["Relation Name"]] += round(rows * node["Actual Loops"])
    for below in node.get("Plans", ()):
        count_rows(below, found)


def find_costly(
    connection: psycopg.Connection, file: str, list_name: str, index_name: str = INDEX
) -> dict[str, dict[str, int]]:
    """Return the statements of a file that read more than a month, and how much of what."""
    values = month_values(connection, list_name, index_name)
    # asked about months or lists, the others about messages of a month
    if file in ("checks", "health", "partitions"):
        values |= {name: values[name][:1] for name in ("lists", "months", "versions")}
    costly = {}
    for name, text in texts(file):
        if not PLANNED.match(text) or DECLARED in text:
            continue
        with connection.transaction(force_rollback=True):
            if file in BY_INDEX:
                look_up_by_index(connection)
            for table in STAGED:
                connection.execute(statement(table, "stage"))
            found = read_rows(connection, text, values)
        ours = {t: n for t, n in found.items() if t not in OF_MONTHS and not t.startswith("pg_")}
        if much := {t: n for t, n in ours.items() if n > (MOST_BLOCKS if t == BLOCKS else MOST)}:
            costly[name] = much
    return costly


@pytest.mark.parametrize(
    ("list_name", "index_name"), [(KNOWN, INDEX), (NEW, INDEX), (KNOWN, NEW_INDEX)]
)
@pytest.mark.parametrize("file", [file for file in FILES if file not in APART])
def test_statement_reads_its_month_only(
    many: psycopg.Connection, file: str, list_name: str, index_name: str
) -> None:
    assert find_costly(many, file, list_name, index_name) == {}


@pytest.mark.parametrize("file", [file for file in FILES if file not in APART | ONCE])
def test_month_reads_no_other_without_statistics(fresh: psycopg.Connection, file: str) -> None:
    allowed = {"browsing": ONCE_OF_BROWSING, "messages": OF_REBUILDS}.get(file, set())
    assert find_costly(fresh, file, NEW).keys() <= allowed


#: Puts the patches of a month into one thread.
JOIN_PATCHES: LiteralString = """
update threads
   set thread_id = 'one'
 where message_id in (
       select message_id from patches where (list, month) = (%(list)s, %(month)s))
"""


def test_thread_is_read_once_for_all_its_patches(many: psycopg.Connection) -> None:
    values = month_values(many, KNOWN)
    with many.transaction(force_rollback=True):
        many.execute(JOIN_PATCHES, values)
        many.execute(statement("commit_links", "stage"))
        found = read_rows(many, dict(texts("commit_links"))["commits_of_patches"], values)
    assert MESSAGES < found["threads"] <= 3 * MESSAGES


#: Columns of a month's staged rows by which they are compared with the stored ones.
COMPARED_BY = {
    "chunks": {"key"},
    "patches": {"list", "month", "message_id", "variant", "place"},
}
ANALYZED = "select attname from pg_stats where tablename = %s"


@pytest.mark.parametrize("table", ["messages", "chunks", "patches", "commits"])
def test_months_of_a_connection_share_one_staging_table(
    many: psycopg.Connection, table: str
) -> None:
    stage = sql.Identifier("pg_temp", f"{table}_stage")
    found = []
    for _ in range(2):
        with many.transaction():
            many.execute(statement(table, "stage"))
            found += many.execute(sql.SQL("select tableoid, * from {}").format(stage)).fetchall()
            found += many.execute("select to_regclass(%s)::oid", [f"pg_temp.{table}_stage"])
            if table in COMPARED_BY:
                copy = sql.SQL("insert into {} select * from {} limit 9")
                many.execute(copy.format(stage, sql.Identifier(table)))
    assert len(found) == 2
    assert found[0] == found[1]


@pytest.mark.parametrize("table", COMPARED_BY)
def test_staged_texts_are_not_analyzed(many: psycopg.Connection, table: str) -> None:
    with many.transaction(force_rollback=True):
        many.execute(statement(table, "stage"))
        name = sql.Identifier("pg_temp", f"{table}_stage")
        many.execute(sql.SQL("insert into {} select * from {}").format(name, sql.Identifier(table)))
        many.execute(statement(table, "analyze_stage"))
        analyzed = many.execute(ANALYZED, [f"{table}_stage"]).fetchall()
    assert {column for (column,) in analyzed} == COMPARED_BY[table]


def test_a_chunk_is_compared_with_no_other_of_the_same_text(many: psycopg.Connection) -> None:
    with many.transaction(force_rollback=True):
        many.execute("update chunks set text_hash = 'x' where list = %s", [KNOWN])
        many.execute(statement("chunks", "stage"))
        of_month = "insert into chunks_stage select * from chunks where (list, month) = (%s, %s)"
        values = month_values(many, KNOWN)
        many.execute(of_month, [values["list"], values["month"]])
        many.execute(statement("chunks", "analyze_stage"))
        found = read_rows(many, statement("chunks", "upsert"), values)
    assert found["chunks"] == found["chunks_stage"] > 0


def test_reading_all_rows_is_counted(many: psycopg.Connection) -> None:
    text = "select count(*) from messages where body_text = %(month)s"
    found = read_rows(many, text, month_values(many, KNOWN))
    assert found["messages"] == 2 * (MONTHS + 1) * MESSAGES


def test_taking_changes_reads_only_their_threads(many: psycopg.Connection) -> None:
    note = """insert into summary_changes (thread_id)
              select to_char(n, 'FM000000') from generate_series(1, 20000) n"""
    threads = [f"{number:06}" for number in range(1_001, 1_501)]
    with many.transaction(force_rollback=True):
        many.execute(note)
        text = statement("thread_summaries", "take_changes")
        found = read_rows(many, text, {"threads": threads})
    assert found["summary_changes"] == len(threads)
