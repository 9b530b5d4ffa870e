"""A model that is not installed: said by the first command, before hours of other work."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from mail_assets.cli import main


@pytest.mark.parametrize("command", [("backfill",), ("index", "build")])
def test_work_that_ends_with_the_model_does_not_begin_without_it(
    bare: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "models" / "gte-small").mkdir(parents=True)
    model = {"MAIL_ENCODER": "gte-small", "MAIL_MODEL_DIR": str(tmp_path / "models")}
    done = CliRunner().invoke(main, command, env=bare | model)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "gte-small/tokenizer.json: expected sha256" in done.stderr
    assert "To get the file: hf download thenlper/gte-small tokenizer.json" in done.stderr
    assert not Path(bare["MAIL_HOME"]).exists()
