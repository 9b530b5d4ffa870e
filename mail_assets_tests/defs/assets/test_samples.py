"""The sample archives through the whole chain, with the shipped lists.toml and model."""

import re

import pytest

from mail_assets.defs.definitions import build_defs
from mail_assets.defs.partitions import asset_key
from mail_assets.settings.settings import load_settings
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.defs.dagster_world import CHAIN, DagsterWorld, range_tags

MONTHS = {
    "harbor-dev|2024-03": 39,
    "harbor-dev|2024-04": 20,
    "harbor-users|2024-03": 19,
    "harbor-users|2024-04": 21,
}


#: Assets with figures in README that do not depend on the encoder.
PRINTED = ("mbox_archives", "messages", "words", "patches", "chunks", "vectors")


def figures_of_readme(asset: str) -> dict[str, int]:
    """Return the figures of an asset in README, below its two commands."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    line = re.search(rf"^ {{6}}{asset} +(.+)$", text, re.MULTILINE)
    assert line, asset
    return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", line[1])}


@pytest.mark.slow
def test_samples_are_loaded_whole_and_indexed(world: DagsterWorld) -> None:
    settings = load_settings({"MAIL_HOME": str(world.home), "MAIL_PG_DSN": world.dsn})
    defs = build_defs(settings, encoder=world.encoder_resource)
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(
        instance=world.instance,
        tags=range_tags(min(MONTHS), max(MONTHS)),
        asset_selection=[asset_key(name) for name in CHAIN],
    )
    messages = world.recorded(result, "messages")
    assert {key: figures["found"] for key, figures in messages.items()} == MONTHS
    stored = sum(figures["stored"] for figures in messages.values())
    assert stored == len(world.rows("messages")) == 98
    assert len(world.rows("messages", "distinct message_id")) == 96
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert world.index.count() == len(world.rows("chunks")) > stored
    embeddings = world.recorded(result, "embeddings").values()
    encoded = sum(figures["encoded"] for figures in embeddings)
    assert encoded == len(world.rows("chunks", "distinct text_hash"))
    for asset in PRINTED:
        printed = figures_of_readme(asset)
        made = world.recorded(result, asset).values()
        assert {name: sum(one[name] for one in made) for name in printed} == printed, asset
