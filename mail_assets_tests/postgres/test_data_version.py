"""Data of another major version of PostgreSQL are never passed over for an empty database."""

from pathlib import Path

import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.errors import PostgresError


def write_data(folder: Path, version: str) -> None:
    """Leave what tells of a cluster of a version."""
    folder.mkdir(parents=True)
    (folder / "PG_VERSION").write_text(f"{version}\n")


def test_data_of_another_version_are_refused_with_the_remedy(folder: Path) -> None:
    server = Cluster(folder / "pg")
    new = server.paths.major
    write_data(folder / "pg" / f"pg{new - 2}", f"{new - 2}")
    write_data(folder / "pg" / f"pg{new - 1}", f"{new - 1}")
    with pytest.raises(PostgresError) as refused:
        server.start()
    message = str(refused.value)
    assert f"{folder}/pg/pg{new - 1} was written by PostgreSQL {new - 1}" in message
    assert f"is PostgreSQL {new} and cannot read it" in message
    assert "MAIL_PG_BIN" in message
    assert "`mail-assets upgrade`" in message
    assert not server.paths.data.exists(), "an empty cluster was begun"


@pytest.mark.parametrize(
    ("name", "version"),
    [("pg17.kept", "17"), ("pg17.new", "17"), ("pg_17", "17"), ("pg9.6", "9.6")],
)
def test_data_set_aside_or_never_finished_are_no_hindrance(
    folder: Path, name: str, version: str
) -> None:
    write_data(folder / "pg" / name, version)
    assert Cluster(folder / "pg").start().running()


def test_data_taken_over_already_are_used(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    server.stop()
    write_data(folder / "pg" / "pg9", "9")
    assert server.start().running()
