"""`mail-assets init`: a first lists.toml, which is never overwritten."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.settings.lists import read_lists
from mail_assets_tests.cli.conftest import assert_fails

SOURCE = "https://lists.example.org/pipermail/my-list/"


@pytest.fixture
def lists_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAIL_LISTS", str(tmp_path / "etc" / "lists.toml"))
    return tmp_path / "etc" / "lists.toml"


def test_init_writes_a_list_and_names_the_next_commands(lists_file: Path) -> None:
    options = ("--dialect", "pipermail", "--language", "german", "--start", "2010-03")
    done = CliRunner().invoke(main, ["init", "--name", "my-list", "--source", SOURCE, *options])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"wrote {lists_file}\nNext:\n")
    for command in ("up", "backfill", "search"):
        assert f"\n  mail-assets {command} " in done.stdout
    assert "lists are in german: MAIL_ENCODER=multilingual-e5-small" in done.stdout
    (mailing_list,) = read_lists(lists_file).lists.values()
    assert (mailing_list.name, mailing_list.source) == ("my-list", SOURCE)
    assert (mailing_list.dialect, mailing_list.start) == ("pipermail", "2010-03")


def test_init_without_options_writes_an_example(lists_file: Path) -> None:
    done = CliRunner().invoke(main, ["init"])
    assert done.exit_code == 0
    assert "Uncomment" in done.stdout
    assert "# [my-list]" in lists_file.read_text()


def test_source_folder_is_relative_to_the_current_folder(
    lists_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "mail").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    done = CliRunner().invoke(main, ["init", "--name", "dev", "--source", "mail"])
    assert done.exit_code == 0
    assert read_lists(lists_file).lists["dev"].source == str(tmp_path / "here" / "mail")


@pytest.mark.parametrize(("source", "written"), [("x", "{0}/x"), ("mbox:x", "mbox:{0}/x")])
def test_single_mbox_file_is_a_source(
    lists_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, written: str
) -> None:
    (tmp_path / "x").touch()
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["init", "--name", "dev", "--source", source])
    assert done.exit_code == 0
    assert read_lists(lists_file).lists["dev"].source == written.format(tmp_path)


@pytest.mark.parametrize(("options", "says"), [
    (("--name", "dev"), "--name and --source are needed, or no option at all"),
    (("--source", SOURCE), "--name and --source are needed"),
    (("--start", "2010-03"), "--name and --source are needed"),
    (("--name", "dev", "--source", "nowhere"), "--source='nowhere': no such folder"),
    (("--name", "a/b", "--source", SOURCE), "a list's name is letters"),
    *((("--name", name, "--source", SOURCE),
       f"--name={name!r}: stands above the lists") for name in ("first_month", "last_month")),
    (("--name", "dev", "--source", SOURCE, "--start", "2024-13"), "--start='2024-13': must be"),
    (("--name", "dev", "--source", SOURCE, "--start", ""), "--start='': must be a month"),
    (("--name", "dev", "--source", SOURCE, "--dialect", "mbx"), "dialect='mbx': allowed: "),
])  # fmt: skip
def test_wrong_option_is_named_and_nothing_is_written(
    lists_file: Path, options: tuple[str, ...], says: str
) -> None:
    done = CliRunner().invoke(main, ["init", *options])
    assert_fails(done, 2, says)
    assert not lists_file.exists()


def test_existing_file_is_kept(lists_file: Path) -> None:
    lists_file.parent.mkdir()
    lists_file.write_text("mine")
    done = CliRunner().invoke(main, ["init", "--name", "dev", "--source", SOURCE])
    assert done.exit_code == 2
    assert "exists already; add a [NAME] table to it" in done.stderr
    assert lists_file.read_text() == "mine"
