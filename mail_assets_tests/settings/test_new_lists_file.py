"""A first lists.toml: what is written is read back as it was meant."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.settings.lists import MailingList, format_lists_file, read_lists, write_lists_file
from mail_assets.settings.values import SettingsError
from mail_assets_tests.conftest import REPOSITORY

SOURCE = "https://lists.example.org/dev/"


def test_a_list_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lists.toml"
    table = {"source": SOURCE, "dialect": "pipermail", "language": "german", "start": "2010-03"}
    write_lists_file(path, {"my-list": table})
    assert read_lists(path) == (
        "2010-03",
        None,
        {"my-list": MailingList("my-list", SOURCE, "pipermail", "german", "2010-03")},
    )


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "lists.toml"
    write_lists_file(path, {"my-list": {"source": SOURCE}})
    assert read_lists(path).lists["my-list"] == MailingList(
        "my-list", SOURCE, None, "english", "1995-01"
    )


def test_without_a_list_the_file_has_an_example_to_uncomment(tmp_path: Path) -> None:
    path = tmp_path / "lists.toml"
    write_lists_file(path, {})
    with pytest.raises(SettingsError, match=r"names no list; add a .NAME. table"):
        read_lists(path)
    head, example = path.read_text().split("\n# [my-list]\n")
    path.write_text(f"{head}\n[my-list]\n{example.replace('# ', '')}".replace("1995-01", "2010-03"))
    assert read_lists(path).lists["my-list"].start == "2010-03"


def test_its_comments_are_those_of_the_repositorys_own() -> None:
    explained = (REPOSITORY / "lists.toml").read_text().partition("\n\n")[0]
    assert format_lists_file({}).startswith(explained)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x7f")))
def test_any_source_is_one_toml_string(source: str) -> None:
    text = format_lists_file({"dev": {"source": source}})
    assert tomllib.loads(text)["dev"] == {"source": source}


def test_a_file_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "lists.toml"
    path.write_text("mine")
    with pytest.raises(SettingsError, match=r"exists already; add a .NAME. table to it"):
        write_lists_file(path, {"my-list": {"source": SOURCE}})
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "table", "says"),
    [
        ("a/b", {"source": SOURCE}, "a list's name is letters"),
        ("dev", {"source": "ftp://host"}, "source='ftp://host'"),
        ("dev", {"source": SOURCE, "dialect": "mbx"}, "dialect='mbx': allowed: "),
        ("dev", {"source": SOURCE, "start": "2010"}, "first_month='2010': must be a month"),
        ("dev", {"source": "a\x7fb"}, "not a readable TOML file"),
        ("dev", {"source": "a\udcffb"}, "cannot be written"),
    ],
)
def test_a_wrong_list_leaves_no_file(
    tmp_path: Path, name: str, table: dict[str, str], says: str
) -> None:
    path = tmp_path / "lists.toml"
    with pytest.raises(SettingsError) as caught:
        write_lists_file(path, {name: table})
    assert says in str(caught.value)
    assert not path.exists()
