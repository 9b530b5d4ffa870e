"""Default places: in a checkout, and as the XDG specification has them for an installed wheel.

[test_remote_model] The variables of a model on a server.
"""

from pathlib import Path

import pytest

from mail_assets.encoding.models import RemoteModel
from mail_assets.openai.variables import VariableError
from mail_assets.settings import values
from mail_assets.settings.settings import load_settings
from mail_assets.settings.values import (
    SettingsError,
    absolute_path,
    read_home,
    read_lists_path,
    read_remote_model,
)
from mail_assets_tests.conftest import REPOSITORY


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with the package in a wheel elsewhere."""
    monkeypatch.setattr(values, "find_checkout", lambda: None)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_checkout_keeps_everything_in_itself() -> None:
    assert read_home({"XDG_DATA_HOME": "/data"}) == REPOSITORY / "var"
    assert read_lists_path({"XDG_CONFIG_HOME": "/config"}) == REPOSITORY / "lists.toml"


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize(
    ("environ", "home", "lists_file"),
    [
        ({}, "/home/ann/.local/share/mail-assets", "/home/ann/.config/mail-assets/lists.toml"),
        (
            {"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config"},
            "/data/mail-assets",
            "/config/mail-assets/lists.toml",
        ),
        (  # the specification: a relative path is to be ignored
            {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "./config"},
            "/home/ann/.local/share/mail-assets",
            "/home/ann/.config/mail-assets/lists.toml",
        ),
        ({"MAIL_HOME": "/srv/mail", "MAIL_LISTS": "/etc/l.toml"}, "/srv/mail", "/etc/l.toml"),
        ({"MAIL_HOME": "~/mail", "MAIL_LISTS": "~/l.toml"}, "/home/ann/mail", "/home/ann/l.toml"),
    ],
)
def test_a_wheel_has_the_users_folders(environ: dict[str, str], home: str, lists_file: str) -> None:
    assert str(read_home(environ)) == home
    assert str(read_lists_path(environ)) == lists_file


def test_a_lists_file_in_the_current_folder_comes_first_in_a_wheel(wheel: Path) -> None:
    (wheel / "lists.toml").touch()
    assert read_lists_path({"XDG_CONFIG_HOME": "/config"}) == wheel / "lists.toml"
    assert read_lists_path({"MAIL_LISTS": "/etc/l.toml"}) == Path("/etc/l.toml")


def test_a_home_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"MAIL_HOME=.*file': must be a directory"):
        read_home({"MAIL_HOME": str(tmp_path / "file")})
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(SettingsError, match="must be a directory"):
        read_home({"MAIL_HOME": str(tmp_path / "dangling")})


@pytest.mark.parametrize(
    ("variable", "scheme"),
    [
        ("MAIL_HOME", ""),
        ("MAIL_STORE", ""),
        ("MAIL_STORE", "file://"),
        ("MAIL_VECTORS", "lance:"),
        ("MAIL_WORDS", "lance:"),
        ("MAIL_MODEL_DIR", ""),
        ("MAIL_QUALITY_SET", ""),
        ("DAGSTER_HOME", ""),
    ],
)
@pytest.mark.parametrize("place", ["file", "file/below/it", "dangling"])
def test_every_folder_that_cannot_be_one_is_named_at_the_start(
    tmp_path: Path, variable: str, scheme: str, place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    value = f"{scheme}{tmp_path / place}"
    none = "this" if place in ("file", "dangling") else str(tmp_path / "file")
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    assert str(caught.value) == (
        f"{variable}={value!r}: must be a directory, {none} is none; set another path"
    )


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("user", ["", "ann"])
def test_a_users_folder_that_is_none_is_refused(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", user)
    for read in (read_home, read_lists_path):
        with pytest.raises(SettingsError, match="HOME is no absolute path"):
            read({})
        assert read({"MAIL_HOME": "/srv/mail", "MAIL_LISTS": "/srv/mail"}) == Path("/srv/mail")
    with pytest.raises(SettingsError, match="MAIL_HOME='~/mail': HOME is no absolute path"):
        read_home({"MAIL_HOME": "~/mail"})


def test_a_relative_path_begins_in_the_given_folder_or_here(wheel: Path) -> None:
    assert absolute_path("X", "mail") == wheel / "mail"
    assert absolute_path("X", "mail", Path("/srv")) == Path("/srv/mail")
    assert absolute_path("X", "~/mail", Path("/srv")) == Path("/home/ann/mail")
    with pytest.raises(SettingsError, match="X='~no-such-user-here': not a usable path"):
        absolute_path("X", "~no-such-user-here")


LOCAL = RemoteModel("nomic-embed-text:v1.5", "http://127.0.0.1:11434/v1")
SECRET = "sk-s3cr3t"


def test_all_of_a_model_is_read_from_the_environment() -> None:
    found = read_remote_model(
        {
            "MAIL_ENCODER": "openai:voyage-3.5",
            "MAIL_ENCODER_URL": "https://api.voyageai.com/v1/",
            "MAIL_ENCODER_KEY": SECRET,
            "MAIL_ENCODER_DIMENSION": "1024",
            "MAIL_ENCODER_MAX_TOKENS": "600",
            "MAIL_ENCODER_QUERY_PREFIX": "query: ",
            "MAIL_ENCODER_DOCUMENT_PREFIX": "passage: ",
            "MAIL_ENCODER_BATCH": "128",
            "MAIL_ENCODER_IN_FLIGHT": "8",
        }
    )
    url = "https://api.voyageai.com/v1"
    assert found == RemoteModel("voyage-3.5", url, 1024, 600, "query: ", "passage: ", 128, 8)
    assert SECRET not in found.name


def test_the_name_of_the_model_is_enough_where_no_key_is_needed() -> None:
    env = {"MAIL_ENCODER": f"openai:{LOCAL.model}", "MAIL_ENCODER_URL": LOCAL.url}
    assert read_remote_model(env) == LOCAL


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MAIL_ENCODER", "openai:", "must be openai:MODEL"),
        ("MAIL_ENCODER", "openai:two words", "must be openai:MODEL"),
        ("MAIL_ENCODER", "openai:m@host", "must be openai:MODEL"),
        ("MAIL_ENCODER_KEY", "", "https://api.openai.com/v1 wants a key"),
        ("MAIL_ENCODER_URL", "localhost:11434", "must be a base URL"),
        ("MAIL_ENCODER_DIMENSION", "4097", "whole number from 0 to 4096"),
        ("MAIL_ENCODER_MAX_TOKENS", "193", "whole number from 194 to 8192"),
        ("MAIL_ENCODER_QUERY_PREFIX", "x" * 401, "at most 400 bytes"),
        ("MAIL_ENCODER_DOCUMENT_PREFIX", "\udcff", "must be text"),
        ("MAIL_ENCODER_BATCH", "0", "from 1 to 2048"),
        ("MAIL_ENCODER_IN_FLIGHT", "65", "from 1 to 64"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, says: str) -> None:
    env = {"MAIL_ENCODER": "openai:text-embedding-3-small", "MAIL_ENCODER_KEY": SECRET}
    with pytest.raises(VariableError) as caught:
        read_remote_model({**env, name: value})
    assert caught.value.args[:2] == (name, value)
    assert says in caught.value.args[2]


def test_a_long_prefix_leaves_room_for_text() -> None:
    env = {"MAIL_ENCODER": "openai:m", "MAIL_ENCODER_KEY": SECRET}
    env["MAIL_ENCODER_DOCUMENT_PREFIX"] = "p" * 330
    with pytest.raises(VariableError, match="from 524 to 8192"):
        read_remote_model(env)
