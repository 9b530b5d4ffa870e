"""The number of cores: what the container grants, hyper-threads counted once."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from mail_assets.encoding.local_encoder import count_physical_cores, list_physical_cores


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, None, id="no cgroup"),
        pytest.param({"cpu.max": "max 100000\n"}, None, id="v2, no limit"),
        pytest.param({"cpu.max": "100000 100000\n"}, 1, id="v2, one CPU"),
        pytest.param({"cpu.max": "5000 100000\n"}, 1, id="v2, a twentieth of a CPU"),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            None,
            id="v1, no limit",
        ),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            1,
            id="v1, half a CPU",
        ),
    ],
)
def test_a_containers_quota_bounds_the_threads(
    files: Mapping[str, str], expected: int | None, tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    unlimited = count_physical_cores(cgroup=tmp_path / "none")
    assert count_physical_cores(cgroup=tmp_path) == (expected or unlimited)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity masks here")
def test_hyper_threads_of_one_core_count_once(tmp_path: Path) -> None:
    for cpu in os.sched_getaffinity(0):
        path = tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text("0-63\n")
    assert count_physical_cores(cpus=tmp_path, cgroup=tmp_path) == 1
    assert list_physical_cores(tmp_path) == [min(os.sched_getaffinity(0))]
