"""All settings at once: default places, values that are set, and settings that join variables."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.encoding.models import RemoteModel
from mail_assets.openai import ChatModel
from mail_assets.processes import machine
from mail_assets.settings import settings as module
from mail_assets.settings.settings import (
    Settings,
    blame_folder,
    load_dagster_settings,
    load_settings,
    read_home,
    read_lists_path,
    shows_colour,
)
from mail_assets.settings.values import SettingsError, absolute_path
from mail_assets.settings.variables import CHAT, EXTRACTIVE, SHARED, SUMMARY_TOKENS, WEB_RATES
from mail_assets.web.limits import DEFAULT_ALLOWANCES, Allowance, Cost
from mail_assets_tests.conftest import REPOSITORY

SECRET = "s3cr3t"
URL = f"postgresql+psycopg2://dagster:{SECRET}@db/dagster"


def test_settings_have_defaults_without_an_environment() -> None:
    settings = load_settings({})
    assert settings.home == REPOSITORY / "var"
    assert settings.store == str(REPOSITORY / "var" / "store")
    assert settings.vectors == f"lance:{REPOSITORY / 'var' / 'vectors'}"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "int8")
    assert (settings.provider, settings.quality_set, settings.chat) == ("cpu", None, None)
    assert (settings.pg_dsn, settings.dagster_url, settings.http_auth) == ("", "", "")
    assert settings.dagster_home == REPOSITORY / "var" / "dagster"
    assert [*settings.lists] == ["harbor-dev", "harbor-users"]


def test_environment_of_process_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    assert load_settings().home == tmp_path


def test_set_values_are_taken(tmp_path: Path) -> None:
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
            "MAIL_PROVIDER": "openvino",
            "MAIL_PG_DSN": f"host=db user=mail password={SECRET}",
            "DAGSTER_POSTGRES_URL": URL,
            "MAIL_HTTP_AUTH": f"archives:{SECRET}",
            "MAIL_MODEL_DIR": "/srv/m",
            "MAIL_JOBS": "3",
        }
    )
    assert settings.home == tmp_path / "home"
    assert settings.store == "s3://bucket/prefix"
    assert settings.vectors == "s3vectors://bucket?region=eu-central-1"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "fp32")
    assert (settings.provider, settings.jobs) == ("openvino", 3)
    assert settings.pg_dsn == f"host=db user=mail password={SECRET}"
    assert (settings.dagster_url, settings.http_auth) == (URL, f"archives:{SECRET}")
    assert settings.model_cache == Path("/srv/m")
    assert SECRET not in repr(settings)


def test_words_are_in_another_place_than_vectors(tmp_path: Path) -> None:
    place = f"lance:{tmp_path}"
    with pytest.raises(
        SettingsError, match=r"MAIL_WORDS=.*must be another place than MAIL_VECTORS"
    ):
        load_settings({"MAIL_VECTORS": place, "MAIL_WORDS": place})


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with the package in a wheel elsewhere."""
    monkeypatch.setattr(module, "find_checkout", lambda: None)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_checkout_keeps_everything_in_itself() -> None:
    assert read_home({"XDG_DATA_HOME": "/data"}) == REPOSITORY / "var"
    assert read_lists_path({"XDG_CONFIG_HOME": "/config"}) == REPOSITORY / "lists.toml"


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize(("environ", "home", "lists_file"), [
    ({}, "/home/ann/.local/share/mail-assets", "/home/ann/.config/mail-assets/lists.toml"),
    ({"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config"}, "/data/mail-assets",
     "/config/mail-assets/lists.toml"),
    (  # the specification: a relative path is to be ignored
        {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "./config"},
        "/home/ann/.local/share/mail-assets",
        "/home/ann/.config/mail-assets/lists.toml",
    ),
    ({"MAIL_HOME": "/srv/mail", "MAIL_LISTS": "/etc/l.toml"}, "/srv/mail", "/etc/l.toml"),
    ({"MAIL_HOME": "~/mail", "MAIL_LISTS": "~/l.toml"}, "/home/ann/mail", "/home/ann/l.toml"),
])  # fmt: skip
def test_wheel_has_folders_of_user(environ: dict[str, str], home: str, lists_file: str) -> None:
    assert str(read_home(environ)) == home
    assert str(read_lists_path(environ)) == lists_file


def test_lists_file_in_the_current_folder_comes_first(wheel: Path) -> None:
    (wheel / "lists.toml").touch()
    assert read_lists_path({"XDG_CONFIG_HOME": "/config"}) == wheel / "lists.toml"
    assert read_lists_path({"MAIL_LISTS": "/etc/l.toml"}) == Path("/etc/l.toml")


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("user", ["", "ann"])
def test_home_of_the_user_must_be_absolute(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", user)
    for read in (read_home, read_lists_path):
        with pytest.raises(SettingsError, match="HOME is not an absolute path"):
            read({})
        assert read({"MAIL_HOME": "/srv/mail", "MAIL_LISTS": "/srv/mail"}) == Path("/srv/mail")
    with pytest.raises(SettingsError, match="MAIL_HOME='~/mail': HOME is not an absolute path"):
        read_home({"MAIL_HOME": "~/mail"})


def test_relative_path_begins_in_its_folder_or_here(wheel: Path) -> None:
    assert absolute_path("X", "mail") == wheel / "mail"
    assert absolute_path("X", "mail", Path("/srv")) == Path("/srv/mail")
    assert absolute_path("X", "~/mail", Path("/srv")) == Path("/home/ann/mail")
    with pytest.raises(SettingsError, match="X='~no-such-user-here': not a usable path"):
        absolute_path("X", "~no-such-user-here")


@pytest.mark.parametrize(("environ", "model"), [
    (
        {
            "MAIL_ENCODER": "openai:voyage-3.5",
            "MAIL_ENCODER_URL": "https://api.voyageai.com/v1/",
            "MAIL_ENCODER_KEY": SECRET,
            "MAIL_ENCODER_DIMENSION": "1024",
            "MAIL_ENCODER_MAX_TOKENS": "600",
            "MAIL_ENCODER_QUERY_PREFIX": "query: ",
            "MAIL_ENCODER_DOCUMENT_PREFIX": "passage: ",
        },
        RemoteModel(
            "voyage-3.5",
            "https://api.voyageai.com/v1",
            *(1024, 600, "query: ", "passage: "),
        ),
    ),
    ({"MAIL_ENCODER": "openai:nomic:v1.5", "MAIL_ENCODER_URL": "http://127.0.0.1:11434/v1"},
     RemoteModel("nomic:v1.5", "http://127.0.0.1:11434/v1")),
])  # fmt: skip
def test_remote_model_is_one_name_without_its_key(
    environ: dict[str, str], model: RemoteModel
) -> None:
    settings = load_settings(environ)
    assert (settings.encoder, settings.precision) == (model.name, "served")
    assert RemoteModel.parse(settings.encoder) == model
    assert SECRET not in repr(settings)


CHAT_MODEL = {"MAIL_CHAT_URL": "http://127.0.0.1:11434/v1/", "MAIL_CHAT_MODEL": "llama3.2"}


def test_chat_model_is_taken_where_it_is_named() -> None:
    chat = ChatModel("llama3.2", "http://127.0.0.1:11434/v1", 6000)
    assert load_settings(CHAT_MODEL).chat == chat


@pytest.mark.parametrize(("environ", "wanted"), [
    ({}, (EXTRACTIVE, SUMMARY_TOKENS)),
    (CHAT_MODEL, (EXTRACTIVE, SUMMARY_TOKENS)),
    ({**CHAT_MODEL, "MAIL_SUMMARIES": "chat"}, (CHAT, SUMMARY_TOKENS)),
    ({"MAIL_SUMMARY_TOKENS": "5000"}, (EXTRACTIVE, 5_000)),
], ids=["nothing", "a-model-for-answers", "chat", "tokens"])  # fmt: skip
def test_summaries_use_a_model_only_when_asked(
    environ: dict[str, str], wanted: tuple[str, int]
) -> None:
    assert load_settings(environ).summaries == wanted


def test_limits_that_are_set_hold_on_this_machine_too() -> None:
    assert load_settings({}).web_limits == DEFAULT_ALLOWANCES
    limits = load_settings({"MAIL_WEB_SEARCHES": "5", "MAIL_WEB_ANSWERS": "0"}).web_limits
    assert limits[Cost.search] == Allowance(5, DEFAULT_ALLOWANCES[Cost.search].at_once, 5)
    assert limits[Cost.answer].per_minute == 0
    assert limits[Cost.read] == DEFAULT_ALLOWANCES[Cost.read]


def test_default_limits_are_those_of_the_server() -> None:
    defaults = {Cost(cost): row.default for cost, row in WEB_RATES.items()}
    assert defaults == {cost: one.per_minute for cost, one in DEFAULT_ALLOWANCES.items()}


@pytest.mark.parametrize(("cores", "processes"), [(1, 2), (2, 2), (3, 3), (64, 4)])
def test_web_processes_are_one_a_core_within_bounds(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "count_physical_cores", lambda: cores)
    assert load_settings({}).web_processes == processes
    assert load_settings({}).jobs == cores
    for text in ("0", "9"):
        assert load_settings({"MAIL_WEB_PROCESSES": text}).web_processes == int(text)


@pytest.mark.parametrize(("environ", "colour"), [
    ({}, True),
    ({"TERM": "xterm-256color"}, True),
    ({"TERM": "dumb"}, False),
    ({"NO_COLOR": "1"}, False),
    ({"NO_COLOR": ""}, True),
])  # fmt: skip
def test_colours_follow_the_usual_variables(environ: dict[str, str], colour: bool) -> None:
    assert shows_colour(environ) == colour


def test_wrong_lists_file_does_not_stop_dagsters_storage(tmp_path: Path) -> None:
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
    assert SECRET not in repr(settings)


@pytest.mark.parametrize("environ", [{}, {"DAGSTER_POSTGRES_URL": URL}])
def test_storage_has_the_defaults_of_all_settings(environ: dict[str, str]) -> None:
    settings, every = load_dagster_settings(environ), load_settings(environ)
    assert (settings.home, settings.postgres_url) == (every.home, every.dagster_url)


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


def test_worker_with_all_variables_starts() -> None:
    assert {row.name for row in SHARED} == WHOLE.keys() - {"MAIL_LOCAL_STATE"}
    assert load_settings(WHOLE).store == "s3://bucket/store"


@pytest.mark.parametrize("name", [row.name for row in SHARED])
@pytest.mark.parametrize("value", [None, ""])
def test_worker_with_a_missing_variable_stops(name: str, value: str | None) -> None:
    environ = {key: text for key, text in {**WHOLE, name: value}.items() if text is not None}
    with pytest.raises(SettingsError, match=f"MAIL_LOCAL_STATE='refuse': not set: {name}; set"):
        load_settings(environ)


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({"MAIL_LOCAL_STATE": "refuse"})
    assert str(raised.value) == (
        "MAIL_LOCAL_STATE='refuse': not set: DAGSTER_HOME, DAGSTER_POSTGRES_URL, MAIL_LISTS, "
        "MAIL_PG_DSN, MAIL_STORE, MAIL_VECTORS, MAIL_WORDS; set them as on the other "
        "machines, or MAIL_LOCAL_STATE=allow to use only this machine"
    )


def test_daemon_needs_only_dagsters_storage() -> None:
    alone = {name: WHOLE[name] for name in ("MAIL_LOCAL_STATE", "DAGSTER_POSTGRES_URL")}
    assert load_dagster_settings(alone).postgres_url == WHOLE["DAGSTER_POSTGRES_URL"]
    with pytest.raises(SettingsError, match="not set: DAGSTER_POSTGRES_URL; set"):
        load_dagster_settings({"MAIL_LOCAL_STATE": "refuse"})


@pytest.mark.parametrize("value", ["", "allow"])
def test_one_machine_alone_needs_no_variable(value: str) -> None:
    environ = {"MAIL_LOCAL_STATE": value}
    assert load_settings(environ) == load_settings({})
    assert load_dagster_settings(environ) == load_dagster_settings({})
    with pytest.raises(SettingsError, match="MAIL_LOCAL_STATE='no': allowed: allow, refuse"):
        load_settings({"MAIL_LOCAL_STATE": "no"})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose home exists, and whose other folders do not."""
    (tmp_path / "home").mkdir()
    return replace(
        load_settings({"MAIL_HOME": str(tmp_path / "home")}),
        store=str(tmp_path / "store" / "deep"),
        dagster_dir=tmp_path / "dagster",
        model_dir=tmp_path / "models",
    )


@pytest.mark.parametrize(("code", "path", "said"), [
    (errno.EACCES, "home", "MAIL_HOME='{0}/home': Permission denied; set"),
    (errno.EROFS, "home/models", "MAIL_HOME='{0}/home': Read-only file system: {0}/home/mod"),
    (errno.ENOENT, "dagster", "DAGSTER_HOME='{0}/dagster': No such file or directory; set"),
    (errno.EACCES, "store", "MAIL_STORE='{0}/store/deep': Permission denied: {0}/store; set"),
    (errno.EPERM, "models/a/b", "MAIL_MODEL_DIR='{0}/models': Operation not permitted: {0}"),
])  # fmt: skip
def test_unusable_folder_is_blamed_on_its_setting(
    settings: Settings, tmp_path: Path, code: int, path: str, said: str
) -> None:
    blamed = blame_folder(settings, OSError(code, os.strerror(code), str(tmp_path / path)))
    assert str(blamed).startswith(said.format(tmp_path))
    assert str(blamed).endswith("set another folder, or let this account write there")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        (errno.EACCES, "elsewhere"),
        (errno.EACCES, ""),  # above the folders, and existing: none of them had to be made
        (errno.ENOENT, "home/gone.parquet"),
        (errno.ENOSPC, "home/full"),
    ],
)
def test_other_errors_are_blamed_on_no_setting(
    settings: Settings, tmp_path: Path, code: int, path: str
) -> None:
    error = OSError(code, os.strerror(code), str(tmp_path / path))
    assert blame_folder(settings, error) is None
    assert blame_folder(settings, OSError("no file is named")) is None
    assert blame_folder(settings, OSError(code, os.strerror(code), 3)) is None
