"""The examples of docs/extending.md run as written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

import mail_assets.own
from mail_assets.definitions import defs
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.partitions import asset_key
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.sample_corpus import Corpus

PAGE = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
OWN, MERGED = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
BIN = Path(sys.executable).parent


def test_own_asset_asks_the_live_index(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "questions.py").write_text(OWN)
    monkeypatch.setattr(mail_assets.own, "__path__", [str(tmp_path)])
    for name, value in corpus.environ.items():
        monkeypatch.setenv(name, value)
    loaded = defs()
    job = loaded.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey("questions")]
        )
    [event] = result.get_asset_materialization_events()
    best = event.materialization.metadata["best"]
    assert isinstance(best, dg.TableMetadataValue)
    assert [record.data["question"] for record in best.records] == [
        "why do jobs run twice",
        "how to delete old rows",
    ]
    sys.modules.pop("mail_assets.own.questions", None)


def test_definitions_are_merged_into_others(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in corpus.environ.items():
        monkeypatch.setenv(name, value)
    module = ModuleType("their_project")
    exec(MERGED, module.__dict__)
    merged = module.defs()
    dg.Definitions.validate_loadable(merged)
    ours = {spec.key for spec in build_defs(corpus.settings).resolve_all_asset_specs()}
    keys = {spec.key for spec in merged.resolve_all_asset_specs()}
    assert keys == ours | {dg.AssetKey("newsletter")}
    parents = merged.resolve_asset_graph().get(dg.AssetKey("newsletter")).parent_keys
    assert parents == {asset_key("threads")}


@pytest.mark.slow
def test_dg_writes_a_file_that_is_loaded(tmp_path: Path) -> None:
    for name in ("mail_assets", "sql"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)  # the bytecode remains valid
    for name in ("pyproject.toml", "dagster.yaml", "lists.toml"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    environ = {
        "PATH": f"{BIN}:{os.defpath}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "MAIL_HOME": str(tmp_path / "home"),
        "VIRTUAL_ENV": str(BIN.parent),
    }
    for command in (["scaffold", "defs", "dagster.asset", "questions.py"], ["list", "defs"]):
        done = subprocess.run(
            [BIN / "dg", *command],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mail_assets" / "own" / "questions.py").is_file()
    assert re.search(r"│ questions\b", done.stdout), done.stdout
