"""A bucket that cannot be filled is refused before anything is encoded."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from mail_assets.indexes.vectors import BucketError, check_mail_bucket
from mail_assets.postgres.database import Database


@pytest.fixture
def reader(mail_dsn: str) -> Iterator[str]:
    """The DSN of an account that may read the mail database and create nothing."""
    name = f"reader_{secrets.token_hex(4)}"
    role = sql.Identifier(name)
    with psycopg.connect(mail_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(role))
        connection.execute(
            sql.SQL("grant select on all tables in schema public to {}").format(role)
        )
        yield make_conninfo(mail_dsn, user=name)
        connection.execute(sql.SQL("drop owned by {}").format(role))
        connection.execute(sql.SQL("drop role {}").format(role))


def test_pgvector_without_the_extension_is_refused_at_once(reader: str, tmp_path: Path) -> None:
    with pytest.raises(
        BucketError, match=r"no extension `vector` \(permission denied.*administrator"
    ):
        check_mail_bucket(Database(tmp_path, reader), "pgvector:")
    check_mail_bucket(Database(tmp_path, reader), f"lance:{tmp_path}")


def test_pgvector_that_can_be_created_is_accepted(mail_dsn: str, tmp_path: Path) -> None:
    check_mail_bucket(Database(tmp_path, mail_dsn), "pgvector:")
    with psycopg.connect(mail_dsn) as connection:
        made = connection.execute("select from pg_extension where extname = 'vector'").fetchall()
    assert made == [], "it is created when an index is"
