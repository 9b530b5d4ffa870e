"""`mail-assets up`, `down`, `status` and `doctor`."""

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mail_assets.cli.home import read_status
from mail_assets.defs.doctor import REFUSED
from mail_assets.files import dagster_yaml
from mail_assets.postgres.database import embedded
from mail_assets.postgres.embedded import Cluster
from mail_assets.settings.lists import read_lists
from mail_assets.settings.settings import load_settings
from mail_assets_tests.cli.conftest import Home, Run, assert_fails, invoke
from mail_assets_tests.postgres.conftest import folder
from mail_assets_tests.world import mail

__all__ = ["folder"]  # fixture


@pytest.mark.slow
def test_doctor_names_commands_for_failed_and_vanished_months(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, home_dsn, model_cache)
    home.environ["MAIL_PRECISION"] = "static"
    lists, folder = tmp_path / "lists.toml", tmp_path / "two"
    folder.mkdir()
    lists.write_text('[two]\nsource = "two"\n')
    first, second = (folder / f"two.{month}.mbox" for month in ("2024-03", "2024-04"))
    first.write_bytes(mail("a"))
    broken = second.with_suffix(".mbox.gz")
    broken.write_bytes(gzip.compress(mail("b"))[:-9])

    def find() -> dict[str, str]:
        [finding] = map(json.loads, home.run("doctor", "--json").stdout.splitlines())
        found: dict[str, str] = finding
        return found

    assert home.run("backfill").exit_code == 1
    failed = find()
    assert (failed["problem"], failed["where"]) == ("the last run has failed", "two 2024-04")
    broken.unlink()
    second.write_bytes(mail("b"))
    home.lines(*shlex.split(failed["remedy"])[1:])
    assert home.run("doctor").exit_code == 0

    second.unlink()
    refused = home.run("backfill")
    assert (refused.exit_code, " --allow-loss\n" in refused.stderr) == (1, True)
    vanished = find()
    assert (vanished["problem"], vanished["where"]) == (REFUSED, "two 2024-04")
    lists.write_text('last_month = "2024-03"\n[two]\nsource = "two"\n')
    assert "outside of" in find()["problem"], "no run can make it"
    lists.write_text('[two]\nsource = "two"\n')
    home.lines(*shlex.split(vanished["remedy"])[1:])
    assert home.run("doctor").exit_code == 0


def test_doctor_finds_data_of_another_major_version(folder: Path, bare: dict[str, str]) -> None:
    data = folder / "postgres" / "pg9"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    result = invoke("doctor", env=bare | {"MAIL_HOME": str(folder)})
    assert result.exit_code == 1
    assert result.stdout.endswith(
        "\n  mail-assets backup --all FOLDER; mail-assets restore FOLDER\n"
    )


def test_doctor_finds_a_full_disk_without_a_server(
    folder: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Cluster(folder / "postgres").start()
    server.stop()
    shutil.rmtree(server.paths.data / "global")
    bare |= {"MAIL_HOME": str(folder)}
    found = invoke("doctor", "--json", env=bare)
    [stopped] = map(json.loads, found.stdout.splitlines())
    assert stopped["problem"] == "the embedded server does not start"
    assert stopped["remedy"] == "mail-assets up"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: (100 << 30, 99 << 30, 1 << 30))
    found = invoke("doctor", "--json", env=bare)
    disk, stopped = map(json.loads, found.stdout.splitlines())
    assert (disk["problem"], found.exit_code) == ("the disk is nearly full", 1)
    assert disk["where"].startswith(f"{folder}: ")
    assert disk["remedy"] == "make room there by hand: prune needs the server"
    assert stopped["remedy"] == "make room, then `mail-assets up`"


def test_status_and_down_make_and_start_nothing(bare: dict[str, str]) -> None:
    status = invoke("status", "--json", env=bare)
    assert (status.exit_code, status.stderr) == (0, "")
    facts = json.loads(status.stdout)
    assert facts["postgres"].endswith("not made yet, starts on demand")
    assert facts["lists"].endswith("lists.toml: quiet")
    assert facts["fingerprint"] in facts["index"]
    assert facts["variables"].items() >= bare.items()
    down = invoke("down", env=bare)
    assert (down.exit_code, down.stdout) == (0, "was not running\n")
    assert not Path(bare["MAIL_HOME"]).exists()


def test_status_of_an_own_server_hides_the_password(run: Run) -> None:
    answering = json.loads(run("status", "--json").stdout)
    assert answering["postgres"].endswith(": answers")
    result = run("status", MAIL_PG_DSN="postgresql://u:secret@127.0.0.1:1/d")
    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("postgres ")]
    assert "127.0.0.1/d: connection failed" in line
    assert "secret" not in result.stdout + result.stderr


def test_status_does_not_ask_the_server_of_a_model(bare: dict[str, str]) -> None:
    # nobody listens on this port
    remote = {"MAIL_ENCODER": "openai:BAAI/bge-m3", "MAIL_ENCODER_URL": "http://127.0.0.1:1/v1"}
    status = invoke("status", "--json", env=bare | remote)
    assert (status.exit_code, status.stderr) == (0, "")
    facts = json.loads(status.stdout)
    assert facts["encoder"] == "openai:BAAI/bge-m3@http://127.0.0.1:1/v1 served"
    assert facts["index"] == f"mail2-bge-m3-{facts['fingerprint']}"


def test_home_that_cannot_be_made_is_named(bare: dict[str, str]) -> None:
    done = invoke("up", env={**bare, "MAIL_HOME": "/proc/nowhere/home"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("mail-assets: MAIL_HOME='/proc/nowhere/home': ")
    assert done.stderr.endswith("; set another folder, or let this account write there\n")


@pytest.mark.slow
def test_up_starts_and_down_stops_and_deletes(bare: dict[str, str]) -> None:
    home = Path(bare["MAIL_HOME"])
    settings = load_settings(bare)
    try:
        up = invoke("up", env=bare)
        assert (up.exit_code, up.stderr) == (0, "")
        assert up.stdout.startswith("postgres 18")
        assert f"\nDagster UI: export DAGSTER_HOME={home}/dagster\n" in up.stdout
        assert up.stdout.endswith("\nencoder: all-minilm-l6-v2 int8\n")
        assert (home / "dagster" / "dagster.yaml").resolve() == dagster_yaml()
        assert read_status(settings)["postgres"].endswith(": running")
        down = invoke("down", env=bare)
        assert down.stdout == "stopped\n"
        assert read_status(settings)["postgres"].endswith(": stopped, starts on demand")
    finally:
        refused = invoke("down", "--delete-data", env=bare, stdin="n\n")
        data = embedded(home).paths.data
        kept = data.is_dir()
        deleted = invoke("down", "--delete-data", "--yes", env=bare)
    assert_fails(refused, 1, f"Delete all data in {data}?")
    assert kept
    assert (deleted.exit_code, deleted.stdout) == (0, "deleted\n")
    assert not data.exists()
    again = invoke("down", "--delete-data", env=bare)
    assert (again.exit_code, again.stdout) == (0, "there is no embedded server\n")


def test_status_visits_eight_files_at_most(bare: dict[str, str]) -> None:
    """A setting is followed through few files: those whose functions run are counted."""
    program = (
        "import sys\nfiles = set()\n"
        "def count(frame, event, _):\n"
        "    code = frame.f_code\n"
        "    if event == 'call' and code.co_flags & 1:\n"  # 1: a function, not a class or module
        "        files.add(code.co_filename)\n"
        "sys.setprofile(count)\n"
        "from mail_assets.cli import main\n"
        "main(['status'], standalone_mode=False)\n"
        "sys.setprofile(None)\n"
        "print(sum('/mail_assets/' in file for file in files))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | bare,
        capture_output=True,
        check=True,
        text=True,
    )
    assert int(done.stdout.splitlines()[-1]) <= 8


SOURCE = "https://lists.example.org/pipermail/my-list/"


@pytest.fixture
def lists_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAIL_LISTS", str(tmp_path / "etc" / "lists.toml"))
    return tmp_path / "etc" / "lists.toml"


def test_init_writes_a_list_and_names_the_next_commands(lists_file: Path) -> None:
    options = ("--dialect", "pipermail", "--language", "german", "--start", "2010-03")
    done = invoke("init", "--name", "my-list", "--source", SOURCE, *options)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"wrote {lists_file}\nNext:\n")
    for command in ("up", "backfill", "search"):
        assert f"\n  mail-assets {command} " in done.stdout
    assert "lists are in german: use MAIL_ENCODER=multilingual-e5-small" in done.stdout
    (mailing_list,) = read_lists(lists_file).lists.values()
    assert (mailing_list.name, mailing_list.source) == ("my-list", SOURCE)
    assert (mailing_list.dialect, mailing_list.start) == ("pipermail", "2010-03")


def test_init_without_options_writes_an_example(lists_file: Path) -> None:
    done = invoke("init")
    assert done.exit_code == 0
    assert "Uncomment" in done.stdout
    assert "# [my-list]" in lists_file.read_text()


def test_source_folder_is_relative_to_the_current_folder(
    lists_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "mail").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    done = invoke("init", "--name", "dev", "--source", "mail")
    assert done.exit_code == 0
    assert read_lists(lists_file).lists["dev"].source == str(tmp_path / "here" / "mail")


@pytest.mark.parametrize(("source", "written"), [("x", "{0}/x"), ("mbox:x", "mbox:{0}/x")])
def test_single_mbox_file_is_a_source(
    lists_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, written: str
) -> None:
    (tmp_path / "x").touch()
    monkeypatch.chdir(tmp_path)
    done = invoke("init", "--name", "dev", "--source", source)
    assert done.exit_code == 0
    assert read_lists(lists_file).lists["dev"].source == written.format(tmp_path)


@pytest.mark.parametrize(("options", "says"), [
    (("--name", "dev"), "give both --name and --source, or no option at all"),
    (("--source", SOURCE), "give both --name and --source"),
    (("--start", "2010-03"), "give both --name and --source"),
    (("--name", "dev", "--source", "nowhere"), "--source='nowhere': no such folder"),
    (("--name", "a/b", "--source", SOURCE), "a list's name is letters"),
    *((("--name", name, "--source", SOURCE),
       f"--name={name!r}: is a top-level key") for name in ("first_month", "last_month")),
    (("--name", "dev", "--source", SOURCE, "--start", "2024-13"), "--start='2024-13': must be"),
    (("--name", "dev", "--source", SOURCE, "--start", ""), "--start='': must be a month"),
    (("--name", "dev", "--source", SOURCE, "--dialect", "mbx"), "dialect='mbx': allowed: "),
])  # fmt: skip
def test_wrong_option_is_named_and_nothing_is_written(
    lists_file: Path, options: tuple[str, ...], says: str
) -> None:
    done = invoke("init", *options)
    assert_fails(done, 2, says)
    assert not lists_file.exists()


def test_existing_file_is_kept(lists_file: Path) -> None:
    lists_file.parent.mkdir()
    lists_file.write_text("mine")
    done = invoke("init", "--name", "dev", "--source", SOURCE)
    assert done.exit_code == 2
    assert "exists already; add a [NAME] table to it" in done.stderr
    assert lists_file.read_text() == "mine"
