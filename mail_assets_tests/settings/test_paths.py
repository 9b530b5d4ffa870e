"""Default places: in a checkout, and as the XDG specification has them for an installed wheel."""

from pathlib import Path

import pytest

from mail_assets.settings import values
from mail_assets.settings.settings import load_settings
from mail_assets.settings.values import SettingsError, absolute_path, read_home, read_lists_path
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
