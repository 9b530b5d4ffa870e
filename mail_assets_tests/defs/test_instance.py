"""The Dagster instance: errors of its storage in one line, and the dagster.yaml of its home."""

import os
from dataclasses import replace
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from psycopg import sql

from mail_assets.defs import instance
from mail_assets.defs.instance import (
    DagsterStorageError,
    open_instance,
    use_dagster_home,
    write_dagster_yaml,
)
from mail_assets.files import dagster_yaml
from mail_assets.postgres.embedded import Cluster
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.settings.values import SettingsError
from mail_assets_tests.defs.test_instance_storage import home, own_server

__all__ = ["home", "own_server"]  # fixtures

SECRET = "s3cr3t"


def url_at(place: str) -> str:
    return f"postgresql+psycopg2://ann:{SECRET}@{place}"


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_missing_server_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_malformed_url_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url_at(place))
    with (
        pytest.raises(SettingsError, match=r"DAGSTER_POSTGRES_URL='postgresql.*\*\*\*': must be"),
        open_instance(load_settings()),
    ):
        pass


@pytest.mark.slow
def test_server_lost_during_use_is_named(cluster: Cluster, own_server: str) -> None:
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
def test_other_errors_are_not_changed() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError), open_instance(load_settings()):
        raise dg.DagsterInvalidDefinitionError("two assets of one key")


OWN = "telemetry: {enabled: false}\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.delenv("DAGSTER_HOME")
    return load_settings({"MAIL_HOME": str(tmp_path / "home")})


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as installed from a wheel."""
    monkeypatch.setattr(instance, "find_checkout", lambda: None)


def test_dagster_home_is_set_if_unset(settings: Settings) -> None:
    assert use_dagster_home(settings) == settings.home / "dagster"
    assert os.environ["DAGSTER_HOME"] == str(settings.home / "dagster")
    assert (settings.home / "dagster" / "dagster.yaml").readlink() == dagster_yaml()


@pytest.mark.parametrize("written", ["instance", "~/instance"])
def test_dagster_home_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", written)
    assert use_dagster_home(load_settings()) == tmp_path / "instance"
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "instance")


def test_empty_dagster_home_gets_our_file(settings: Settings, tmp_path: Path) -> None:
    assert use_dagster_home(replace(settings, dagster_dir=tmp_path / "new")) == tmp_path / "new"
    assert (tmp_path / "new" / "dagster.yaml").is_symlink()
    assert not (settings.home / "dagster").exists()


def test_home_of_other_projects_keeps_its_defaults(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "shared" / "history").mkdir(parents=True)
    use_dagster_home(replace(settings, dagster_dir=tmp_path / "shared"))
    assert not (tmp_path / "shared" / "dagster.yaml").exists()


def test_users_file_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(OWN)
    write_dagster_yaml(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == OWN


def test_users_link_is_not_changed(tmp_path: Path) -> None:
    # like a configuration mounted by Kubernetes
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "dagster.yaml").write_text(OWN)
    (tmp_path / "dagster.yaml").symlink_to("..data/dagster.yaml")
    write_dagster_yaml(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == OWN


@pytest.mark.parametrize(
    ("target", "there"), [("gone/dagster.yaml", False), ("other/dagster.yaml", True)]
)
def test_link_to_another_checkout_follows_this_one(
    tmp_path: Path, target: str, there: bool
) -> None:
    if there:
        (tmp_path / "other" / "mail_assets").mkdir(parents=True)
        (tmp_path / target).write_text(OWN)
    link = tmp_path / "home" / "dagster.yaml"
    link.parent.mkdir()
    link.symlink_to(tmp_path / target)
    write_dagster_yaml(link.parent)
    assert link.readlink() == dagster_yaml()


@pytest.mark.usefixtures("wheel")
def test_wheel_writes_a_copy_once(tmp_path: Path) -> None:
    write_dagster_yaml(tmp_path)
    copy = tmp_path / "dagster.yaml"
    assert not copy.is_symlink()
    assert copy.read_text().partition("\n")[2] == dagster_yaml().read_text()
    written = copy.stat()
    write_dagster_yaml(tmp_path)
    assert copy.stat() == written
    assert [*tmp_path.iterdir()] == [copy]


@pytest.mark.usefixtures("wheel")
def test_copy_follows_the_version_until_it_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, copy = tmp_path / "older.yaml", tmp_path / "home" / "dagster.yaml"
    older.write_text(OWN)
    with monkeypatch.context() as version:
        version.setattr(instance, "dagster_yaml", lambda: older)
        write_dagster_yaml(copy.parent)
    write_dagster_yaml(copy.parent)
    assert copy.read_text().endswith(dagster_yaml().read_text())
    edited = copy.read_text() + "# mine\n"
    copy.write_text(edited)
    write_dagster_yaml(copy.parent)
    assert copy.read_text() == edited


@pytest.mark.usefixtures("wheel")
def test_wheel_replaces_the_link_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").symlink_to(dagster_yaml())
    write_dagster_yaml(tmp_path)
    assert not (tmp_path / "dagster.yaml").is_symlink()
