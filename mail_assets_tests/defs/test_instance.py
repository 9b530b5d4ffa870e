"""A storage of Dagster that fails is one line that names the variable, or what its server said."""

import dagster as dg
import psycopg
import pytest
from psycopg import sql

from mail_assets.defs.instance import DagsterStorageError, open_instance
from mail_assets.postgres.embedded import Cluster
from mail_assets.settings.settings import load_settings
from mail_assets.settings.values import SettingsError
from mail_assets_tests.defs.test_instance_storage import home, own_server

__all__ = ["home", "own_server"]  # fixtures

SECRET = "s3cr3t"


def url_at(place: str) -> str:
    return f"postgresql+psycopg2://ann:{SECRET}@{place}"


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_a_server_that_is_not_there_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url_at("127.0.0.1:1/dagster"))
    with pytest.raises(DagsterStorageError) as caught, open_instance(load_settings()):
        pass
    message = str(caught.value)
    assert message.startswith("DAGSTER_POSTGRES_URL=postgresql+psycopg2://***, Dagster's storage, ")
    assert "Connection refused" in message
    assert SECRET not in message
    assert "\n" not in message


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("place", ["127.0.0.1:port/dagster", "[::1/dagster"])
def test_a_url_that_cannot_be_read_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url_at(place))
    with (
        pytest.raises(SettingsError, match=r"DAGSTER_POSTGRES_URL='postgresql.*\*\*\*': must be"),
        open_instance(load_settings()),
    ):
        pass


@pytest.mark.slow
def test_a_server_that_shuts_us_out_while_the_instance_is_used_is_named_too(
    cluster: Cluster, own_server: str
) -> None:
    name = own_server.partition("?")[0].rpartition("/")[2]
    with pytest.raises(DagsterStorageError, match="not currently accepting connections"):
        look_while_shut_out(cluster, name)


def look_while_shut_out(cluster: Cluster, database: str) -> None:
    with (
        open_instance(load_settings()) as instance,
        psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection,
    ):
        name = sql.Identifier(database)
        connection.execute(sql.SQL("alter database {} allow_connections false").format(name))
        ours = "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = %s"
        connection.execute(ours, [database])
        instance.get_runs()


@pytest.mark.usefixtures("own_server")
def test_what_is_no_failure_of_the_storage_is_left_as_it_is() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError), open_instance(load_settings()):
        raise dg.DagsterInvalidDefinitionError("two assets of one key")
