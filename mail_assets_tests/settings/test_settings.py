"""The settings of alerts: which URLs are taken, and that the webhook's is never repeated.

[test_archives] MAIL_KEEP_ARCHIVES: how long former archives are kept.

[test_asset_graph] Owners and freshness: what may be set, and mistakes named with the remedy.

[test_dagster] The settings of Dagster's storage do not depend on the lists.

[test_environment] All settings at once: defaults that need nothing, and what is set is taken.

[test_folders] Errors of folders that settings name, told with the setting and the remedy.

[test_local_state] A worker with a variable missing stops, and says which; one machine alone needs none.

[test_summaries] What makes summaries, as the environment says.
"""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.settings.settings import (
    CHAT,
    EXTRACTIVE,
    FRESH_HOURS,
    SHARED_VARIABLES,
    SUMMARY_TOKENS,
    Settings,
    blame_folder,
    load_dagster_settings,
    load_settings,
    read_alert_url,
    read_base_url,
    read_fresh_hours,
    read_keep_archives,
    read_owners,
)
from mail_assets.settings.values import SettingsError
from mail_assets_tests.conftest import REPOSITORY


def test_alerts_are_off_where_nothing_is_set() -> None:
    assert read_alert_url({}) == read_base_url({}, "MAIL_UI_URL", "x") == ""


def test_a_webhook_is_taken_as_it_is() -> None:
    url = "https://hooks.slack.com/services/T0/B0/XYZ"
    assert read_alert_url({"MAIL_ALERT_URL": f" {url}\n"}) == url


def test_a_wrong_webhook_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as error:
        read_alert_url({"MAIL_ALERT_URL": "http://example.org/services/T0/B0/XYZ"})
    assert str(error.value) == (
        "MAIL_ALERT_URL='***': must be an https:// URL; http:// only for this machine"
    )


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        ("https://dagster.example.org/mail", "https://dagster.example.org/mail"),
    ],
)
def test_the_base_url_of_the_ui_ends_without_a_slash(value: str, url: str) -> None:
    assert read_base_url({"MAIL_UI_URL": value}, "MAIL_UI_URL", "http://127.0.0.1:3000") == url


@pytest.mark.parametrize(
    "value",
    [
        *("127.0.0.1:3000", "ftp://example.org", "http://", "http://[::1", "http://a b"),
        *("https://user:password@example.org", "https://example.org/?x", "https://a.org/#b"),
        *("https://a.org/<b>", "https://a.org/a|b"),
    ],
)
def test_any_other_base_url_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_UI_URL=.*: must be a base URL such as"):
        read_base_url({"MAIL_UI_URL": value}, "MAIL_UI_URL", "http://127.0.0.1:3000")


@pytest.mark.parametrize(("value", "days"), [("", 30), ("0", 0), ("7", 7)])
def test_days_are_a_number(value: str, days: int) -> None:
    assert read_keep_archives({"MAIL_KEEP_ARCHIVES": value}) == days


@pytest.mark.parametrize("value", ["-1", "a week", "1.5", "٣"])
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(
        SettingsError, match=r"MAIL_KEEP_ARCHIVES=.* must be 0 to 99999 days; 0: not kept"
    ):
        read_keep_archives({"MAIL_KEEP_ARCHIVES": value})


@pytest.mark.parametrize(
    ("value", "owners"),
    [
        ("", ()),
        (" , ", ()),
        ("ann@example.org", ("ann@example.org",)),
        ("team:mail, ann@example.org", ("team:mail", "ann@example.org")),
    ],
)
def test_owners_are_separated_by_commas(value: str, owners: tuple[str, ...]) -> None:
    assert read_owners({"MAIL_OWNERS": value}) == owners


@pytest.mark.parametrize("value", ["ann", "team:", "ann@example", "team:mail;ann@example.org,x"])
def test_what_is_no_owner_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_OWNERS=.* an e-mail address or team:NAME"):
        read_owners({"MAIL_OWNERS": value})


@pytest.mark.parametrize(("value", "hours"), [("", FRESH_HOURS), ("0", 0), ("168", 168)])
def test_freshness_is_a_number_of_hours(value: str, hours: int) -> None:
    assert read_fresh_hours({"MAIL_FRESH_HOURS": value}) == hours


@pytest.mark.parametrize("value", ["daily", "-1", "1.5", "999999"])
def test_what_is_no_number_of_hours_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_FRESH_HOURS=.* must be 0 to 99999 hours; 0: n"):
        read_fresh_hours({"MAIL_FRESH_HOURS": value})


URL = "postgresql+psycopg2://dagster:s3cr3t@db/dagster"


def test_a_mistake_in_lists_toml_does_not_stop_dagsters_storage(tmp_path: Path) -> None:
    lists_file = tmp_path / "lists.toml"
    lists_file.write_text("[dev\n")
    environ = {
        "MAIL_HOME": str(tmp_path),
        "MAIL_LISTS": str(lists_file),
        "DAGSTER_POSTGRES_URL": URL,
    }
    with pytest.raises(SettingsError, match="not a readable TOML file"):
        load_settings(environ)
    settings = load_dagster_settings(environ)
    assert (settings.home, settings.postgres_url) == (tmp_path, URL)
    assert "s3cr3t" not in repr(settings)


@pytest.mark.parametrize("environ", [{}, {"DAGSTER_POSTGRES_URL": URL}])
def test_it_has_the_defaults_of_all_settings(environ: dict[str, str]) -> None:
    settings, every = load_dagster_settings(environ), load_settings(environ)
    assert (settings.home, settings.postgres_url) == (every.home, every.dagster_url)


def test_a_url_for_another_driver_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError, match=r"='postgresql://\*\*\*': must begin with postgresql"):
        load_dagster_settings({"DAGSTER_POSTGRES_URL": URL.replace("+psycopg2", "")})


SECRET = "s3cr3t"


def test_without_an_environment_everything_has_a_default() -> None:
    settings = load_settings({})
    assert settings.home == REPOSITORY / "var"
    assert settings.store == str(REPOSITORY / "var" / "store")
    assert settings.vectors == f"lance:{REPOSITORY / 'var' / 'vectors'}"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "int8")
    assert (settings.pg_dsn, settings.dagster_url, settings.http_auth) == ("", "", "")
    assert settings.dagster_home == REPOSITORY / "var" / "dagster"
    assert [*settings.lists] == ["harbor-dev", "harbor-users"]


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    names = ("HOME", "LISTS", "STORE", "VECTORS", "ENCODER", "PRECISION", "PG_DSN", "HTTP_AUTH")
    assert load_settings({f"MAIL_{name}": "" for name in names}) == load_settings({})


def test_the_process_s_own_environment_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    assert load_settings().home == tmp_path


def test_what_is_set_is_taken(tmp_path: Path) -> None:
    lists_file = tmp_path / "lists.toml"
    lists_file.write_text('[dev]\nsource = "s3://bucket/dev"\n')
    settings = load_settings(
        {
            "MAIL_HOME": str(tmp_path / "home"),
            "MAIL_LISTS": str(lists_file),
            "MAIL_STORE": "s3://bucket/prefix",
            "MAIL_VECTORS": "s3vectors://bucket?region=eu-central-1",
            "MAIL_ENCODER": "all-minilm-l6-v2",
            "MAIL_PRECISION": "fp32",
            "MAIL_PG_DSN": f"host=db user=mail password={SECRET}",
            "DAGSTER_POSTGRES_URL": f"postgresql+psycopg2://u:{SECRET}@db/dagster",
            "MAIL_HTTP_AUTH": f"archives:{SECRET}",
        }
    )
    assert settings.home == tmp_path / "home"
    assert settings.store == "s3://bucket/prefix"
    assert settings.vectors == "s3vectors://bucket?region=eu-central-1"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "fp32")
    assert settings.pg_dsn == f"host=db user=mail password={SECRET}"
    assert settings.http_auth == f"archives:{SECRET}"
    assert SECRET not in repr(settings)


def test_models_are_kept_in_the_home_unless_told_otherwise(tmp_path: Path) -> None:
    home = {"MAIL_HOME": str(tmp_path)}
    assert load_settings(home).model_cache == tmp_path / "models"
    assert load_settings({**home, "MAIL_MODEL_DIR": "/srv/m"}).model_cache == Path("/srv/m")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose home is there, and whose other folders are not."""
    (tmp_path / "home").mkdir()
    return replace(
        load_settings({"MAIL_HOME": str(tmp_path / "home")}),
        store=str(tmp_path / "store" / "deep"),
        dagster_dir=tmp_path / "dagster",
        model_dir=tmp_path / "models",
    )


@pytest.mark.parametrize(
    ("code", "path", "said"),
    [
        (errno.EACCES, "home", "MAIL_HOME='{0}/home': Permission denied; set"),
        (errno.EROFS, "home/models", "MAIL_HOME='{0}/home': Read-only file system: {0}/home/mod"),
        (errno.ENOENT, "dagster", "DAGSTER_HOME='{0}/dagster': No such file or directory; set"),
        (errno.EACCES, "store", "MAIL_STORE='{0}/store/deep': Permission denied: {0}/store; set"),
        (errno.EPERM, "models/a/b", "MAIL_MODEL_DIR='{0}/models': Operation not permitted: {0}"),
    ],
)
def test_the_setting_of_a_folder_that_cannot_be_used_is_named(
    settings: Settings, tmp_path: Path, code: int, path: str, said: str
) -> None:
    blamed = blame_folder(settings, OSError(code, os.strerror(code), str(tmp_path / path)))
    assert str(blamed).startswith(said.format(tmp_path))
    assert str(blamed).endswith("set another folder, or let this account write there")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        (errno.EACCES, "elsewhere"),
        (errno.EACCES, ""),  # above the folders, and there: none of them was to be made
        (errno.ENOENT, "home/gone.parquet"),
        (errno.ENOSPC, "home/full"),
    ],
)
def test_other_errors_are_of_no_setting(
    settings: Settings, tmp_path: Path, code: int, path: str
) -> None:
    error = OSError(code, os.strerror(code), str(tmp_path / path))
    assert blame_folder(settings, error) is None
    assert blame_folder(settings, OSError("no file is named")) is None
    assert blame_folder(settings, OSError(code, os.strerror(code), 3)) is None


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


CHAT_MODEL = {"MAIL_CHAT_URL": "http://localhost:1/v1", "MAIL_CHAT_MODEL": "made-mini"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, (EXTRACTIVE, SUMMARY_TOKENS)),
        (CHAT_MODEL, (EXTRACTIVE, SUMMARY_TOKENS)),
        ({**CHAT_MODEL, "MAIL_SUMMARIES": "chat"}, (CHAT, SUMMARY_TOKENS)),
        ({"MAIL_SUMMARY_TOKENS": "5000"}, (EXTRACTIVE, 5_000)),
    ],
    ids=["nothing", "a-model-for-answers", "chat", "tokens"],
)
def test_summaries_need_no_model_unless_one_is_asked_for(
    variables: dict[str, str], wanted: tuple[str, int]
) -> None:
    assert load_settings(variables).summaries == wanted


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MAIL_SUMMARIES": "chat"}, "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL"),
        ({"MAIL_SUMMARIES": "best"}, "extractive"),
        ({"MAIL_SUMMARY_TOKENS": "many"}, "MAIL_SUMMARY_TOKENS"),
    ],
)
def test_a_wrong_value_is_named(variables: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings(variables)
