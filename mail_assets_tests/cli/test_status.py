"""`mail-assets status`: what is configured and what is there; it starts nothing."""

import json
from pathlib import Path

from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets_tests.cli.conftest import Run


def test_status_and_down_with_nothing_there_make_and_start_nothing(bare: dict[str, str]) -> None:
    runner = CliRunner()
    status = runner.invoke(main, ["status", "--json"], env=bare)
    assert (status.exit_code, status.stderr) == (0, "")
    facts = json.loads(status.stdout)
    assert facts["postgres"].endswith("not made yet, starts on demand")
    assert facts["lists"].endswith("lists.toml: quiet")
    assert facts["fingerprint"] in facts["index"]
    down = runner.invoke(main, ["down"], env=bare)
    assert (down.exit_code, down.stdout) == (0, "was not running\n")
    assert not Path(bare["MAIL_HOME"]).exists()


def test_a_wrong_number_of_a_chat_model_stops_where_no_model_is_set(bare: dict[str, str]) -> None:
    result = CliRunner().invoke(main, ["status"], env={**bare, "MAIL_CHAT_BUDGET": "-3"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert "MAIL_CHAT_BUDGET='-3': must be a whole number from 1000" in result.stderr


def test_status_says_whether_ones_own_server_answers_and_hides_the_password(run: Run) -> None:
    answering = json.loads(run("status", "--json").stdout)
    assert answering["postgres"].endswith(": answers")
    result = run("status", MAIL_PG_DSN="postgresql://u:secret@127.0.0.1:1/d")
    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("postgres ")]
    assert "127.0.0.1/d: connection failed" in line
    assert "secret" not in result.stdout + result.stderr


def test_status_knows_the_index_of_a_model_on_a_server_without_asking_it(
    bare: dict[str, str],
) -> None:
    # nobody listens on this port
    remote = {"MAIL_ENCODER": "openai:BAAI/bge-m3", "MAIL_ENCODER_URL": "http://127.0.0.1:1/v1"}
    status = CliRunner().invoke(main, ["status", "--json"], env=bare | remote)
    assert (status.exit_code, status.stderr) == (0, "")
    facts = json.loads(status.stdout)
    assert facts["encoder"] == "openai:BAAI/bge-m3@http://127.0.0.1:1/v1 served"
    assert facts["index"] == f"mail2-bge-m3-{facts['fingerprint']}"
