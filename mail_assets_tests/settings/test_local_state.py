"""A worker with a variable missing stops, and says which; one machine alone needs none."""

import pytest

from mail_assets.settings.settings import SHARED_VARIABLES, load_dagster_settings, load_settings
from mail_assets.settings.values import SettingsError
from mail_assets_tests.conftest import REPOSITORY

WHOLE = {
    "MAIL_LOCAL_STATE": "refuse",
    "DAGSTER_HOME": "/opt/deploy/celery",
    "DAGSTER_POSTGRES_URL": "postgresql+psycopg2://mail@postgres/dagster",
    "MAIL_LISTS": str(REPOSITORY / "lists.toml"),
    "MAIL_PG_DSN": "postgresql://mail@postgres/mail",
    "MAIL_STORE": "s3://bucket/store",
    "MAIL_VECTORS": "lance:/mounted/vectors",
    "MAIL_WORDS": "lance:/mounted/words",
}


def test_a_worker_with_all_variables_starts() -> None:
    assert {*SHARED_VARIABLES} == WHOLE.keys() - {"MAIL_LOCAL_STATE"}
    assert load_settings(WHOLE).store == "s3://bucket/store"


@pytest.mark.parametrize("name", SHARED_VARIABLES)
@pytest.mark.parametrize("value", [None, ""])
def test_a_worker_with_one_missing_stops_and_names_it(name: str, value: str | None) -> None:
    environ = {key: text for key, text in {**WHOLE, name: value}.items() if text is not None}
    with pytest.raises(SettingsError, match=f"MAIL_LOCAL_STATE='refuse': not set: {name}; set"):
        load_settings(environ)


def test_all_missing_variables_are_named_at_once_with_both_remedies() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({"MAIL_LOCAL_STATE": "refuse"})
    assert str(raised.value) == (
        "MAIL_LOCAL_STATE='refuse': not set: DAGSTER_HOME, DAGSTER_POSTGRES_URL, MAIL_LISTS, "
        "MAIL_PG_DSN, MAIL_STORE, MAIL_VECTORS, MAIL_WORDS; set them as the other machines have "
        "them, or MAIL_LOCAL_STATE=allow to use this machine alone"
    )


def test_the_webserver_and_the_daemon_need_dagsters_storage_only() -> None:
    alone = {name: WHOLE[name] for name in ("MAIL_LOCAL_STATE", "DAGSTER_POSTGRES_URL")}
    assert load_dagster_settings(alone).postgres_url == WHOLE["DAGSTER_POSTGRES_URL"]
    with pytest.raises(SettingsError, match="not set: DAGSTER_POSTGRES_URL; set"):
        load_dagster_settings({"MAIL_LOCAL_STATE": "refuse"})


@pytest.mark.parametrize("value", [None, "", "allow"])
def test_one_machine_alone_needs_no_variable(value: str | None) -> None:
    environ = {} if value is None else {"MAIL_LOCAL_STATE": value}
    assert load_settings(environ) == load_settings({})
    assert load_dagster_settings(environ) == load_dagster_settings({})


def test_another_value_is_refused() -> None:
    with pytest.raises(SettingsError, match="MAIL_LOCAL_STATE='no': allowed: allow, refuse"):
        load_settings({"MAIL_LOCAL_STATE": "no"})
