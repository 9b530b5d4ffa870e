"""Two runs at once: a month is read and cut while another run encodes."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mail_assets.encoding.local_encoder import encoder_lock
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import MARCH, mail


def test_month_is_chunked_while_another_run_encodes(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    with ThreadPoolExecutor(1) as executor:
        with encoder_lock(Path(world.encoder_resource.cache), lambda: None):
            run = executor.submit(world.month, MARCH)
            while not _state(world, "chunks") and not run.done():
                time.sleep(0.05)
            assert _state(world, "chunks")
            assert not run.done()
            assert not _state(world, "embeddings")
        assert run.result().success
    assert _state(world, "embeddings")


def _state(world: DagsterWorld, asset: str) -> bool:
    return bool(world.rows("partitions", where=f"asset = '{asset}'"))
