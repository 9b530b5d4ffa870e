"""`mail-assets sql install`: output, and the functions it leaves."""

from pathlib import Path

import psycopg
from click.testing import Result
from psycopg import sql

from mail_assets_tests.cli.conftest import assert_fails, invoke


def run(bare: dict[str, str], dsn: str, *arguments: str, **environ: str) -> Result:
    return invoke("sql", *arguments, env={**bare, "MAIL_PG_DSN": dsn, **environ})


def test_install_names_the_vectors_and_what_answers(
    bare: dict[str, str], postgres_dsn: str, tmp_path: Path
) -> None:
    done = run(bare, postgres_dsn, "install")
    assert (done.exit_code, done.stdout) == (0, "installed for 1 lists\n")
    assert f"the vectors are in lance:{tmp_path}" in done.stderr
    done = run(bare, postgres_dsn, "install", MAIL_VECTORS="pgvector:")
    assert (done.exit_code, done.stderr) == (0, "")
    with psycopg.connect(postgres_dsn) as connection:
        assert connection.execute("select * from search_fulltext('word')").fetchall() == []


def test_install_opens_and_closes_public_reading(bare: dict[str, str], postgres_dsn: str) -> None:
    role = sql.Identifier("test_sql_reader")
    may = "select has_schema_privilege('test_sql_reader', 'mail_public', 'usage')"
    view = "select to_regclass('mail_public.messages') is not null"
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {}").format(role))
        try:
            done = run(bare, postgres_dsn, "install", "--public", "test_sql_reader")
            assert done.stdout == "installed for 1 lists, public for test_sql_reader\n"
            assert connection.execute(may).fetchone() == (True,)
            assert connection.execute(view).fetchone() == (True,)
            assert run(bare, postgres_dsn, "install").exit_code == 0
            assert connection.execute(view).fetchone() == (False,)
        finally:
            connection.execute(sql.SQL("drop owned by {0}; drop role {0}").format(role))


def test_unknown_role_exits_1(bare: dict[str, str], postgres_dsn: str) -> None:
    done = run(bare, postgres_dsn, "install", "--public", "nobody_there")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "mail-assets: there is no role nobody_there: create it first (create role ... nologin)\n"
    )


def test_role_without_a_name_is_a_wrong_argument(bare: dict[str, str], postgres_dsn: str) -> None:
    done = run(bare, postgres_dsn, "install", "--public", "")
    assert_fails(done, 2, "'--public': must not be empty")
