"""Old versions of all tables of a place are deleted, without a row lost."""

import datetime as dt
from functools import partial
from pathlib import Path

import lancedb
import pytest

from mail_assets.lance import upkeep
from mail_assets.lance.upkeep import OldVersions, clean_table, prune_versions


def prune(url: str, *, dry_run: bool = False) -> OldVersions:
    clean = partial(clean_table, errors=RuntimeError)
    return prune_versions(url, clean, RuntimeError, dry_run=dry_run)


def test_versions_that_no_reader_needs_go_of_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"lance:{tmp_path}"
    assert prune(url) == (0, 0), "there is nothing yet"
    connection = lancedb.connect(tmp_path)
    for name in ("live", "former"):
        table = connection.create_table(name, [{"key": "0", "text": "x" * 1000}])
        for n in range(1, 4):
            table.add([{"key": str(n), "text": "y" * 1000}])
    assert prune(url) == (0, 0), "somebody may be reading them"
    # Lance rounds times: the newest may seem to come from a moment that is yet to come
    monkeypatch.setattr(upkeep, "LONGEST_READ", dt.timedelta(seconds=-1))
    monkeypatch.setattr(upkeep, "COMPACTING", dt.timedelta())
    dry = prune(url, dry_run=True)
    assert (dry.versions, dry.bytes) == (6, None)
    done = prune(url)
    assert done.versions == 6
    assert done.bytes is not None
    for name in ("live", "former"):
        table = lancedb.connect(tmp_path).open_table(name)
        assert sorted(row["key"] for row in table.to_arrow().to_pylist()) == ["0", "1", "2", "3"]
        assert table.count_rows() == 4
