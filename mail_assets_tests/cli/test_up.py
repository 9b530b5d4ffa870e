"""`mail-assets up` and `down`: the embedded server started, stopped, deleted."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from mail_assets.checkout import dagster_yaml
from mail_assets.cli import main
from mail_assets.cli.home import read_status
from mail_assets.postgres.database import embedded
from mail_assets.settings.settings import load_settings


def test_a_home_that_cannot_be_made_is_named_with_the_remedy(
    bare: dict[str, str],
) -> None:
    done = CliRunner().invoke(main, ["up"], env={**bare, "MAIL_HOME": "/proc/nowhere/home"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("mail-assets: MAIL_HOME='/proc/nowhere/home': ")
    assert done.stderr.endswith("; set another folder, or let this account write there\n")


@pytest.mark.slow
def test_up_starts_down_stops_and_on_request_deletes(bare: dict[str, str]) -> None:
    home = Path(bare["MAIL_HOME"])
    settings = load_settings(bare)
    runner = CliRunner()
    try:
        up = runner.invoke(main, ["up"], env=bare)
        assert (up.exit_code, up.stderr) == (0, "")
        assert up.stdout.startswith("postgres 18")
        assert f"\nDagster UI: export DAGSTER_HOME={home}/dagster\n" in up.stdout
        assert up.stdout.endswith("\nencoder: all-minilm-l6-v2 int8\n")
        assert (home / "dagster" / "dagster.yaml").resolve() == dagster_yaml()
        assert read_status(settings)["postgres"].endswith(": running")
        down = runner.invoke(main, ["down"], env=bare)
        assert down.stdout == "stopped\n"
        assert read_status(settings)["postgres"].endswith(": stopped, starts on demand")
    finally:
        refused = runner.invoke(main, ["down", "--delete-data"], env=bare, input="n\n")
        data = embedded(home).paths.data
        kept = data.is_dir()
        deleted = runner.invoke(main, ["down", "--delete-data", "--yes"], env=bare)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"Delete all data in {data}?" in refused.stderr
    assert kept
    assert (deleted.exit_code, deleted.stdout) == (0, "deleted\n")
    assert not data.exists()
    again = runner.invoke(main, ["down", "--delete-data"], env=bare)
    assert (again.exit_code, again.stdout) == (0, "there is no embedded server\n")
