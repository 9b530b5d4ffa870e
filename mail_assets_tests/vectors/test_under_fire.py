"""After faults, kills and parallel writers, a bucket has the keys and values of the chunks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import botocore.endpoint
import numpy as np
import pytest

from mail_assets.indexes.reconcile import reconcile
from mail_assets.postgres.database import Database
from mail_assets.vectors import s3vectors
from mail_assets_tests.forks import start_process
from mail_assets_tests.vectors.bulk import Bulk, write_one
from mail_assets_tests.vectors.conftest import TOKEN
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors, Fault, at_random
from mail_assets_tests.vectors.processes import Place, run_together

MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")


def assert_exact(bulk: Bulk, months: tuple[str, ...]) -> None:
    """The bucket holds exactly the months' vectors, each once, bit for bit (half in pgvector)."""
    index = bulk.index
    expected = {key: values for month in months for key, values in bulk.expected(month).items()}
    keys = [*index.keys()]
    assert len(keys) == len(expected)
    held = index.get(keys, data=True)
    assert held.keys() == expected.keys()
    atol = 5e-4 if bulk.place.url == "pgvector:" else 0
    np.testing.assert_allclose(
        np.stack([held[key].values for key in expected]), np.stack([*expected.values()]), atol=atol
    )
    assert {str(v.metadata["message_id"]).partition("@")[2] for v in held.values()} == {*months}
    with Database(bulk.home, bulk.dsn).connect("test") as connection:
        assert reconcile(connection, bulk.mail_index).clean


@pytest.mark.slow
def test_four_processes_write_at_once(place: Place, tmp_path: Path, mail_dsn: str) -> None:
    bulk = Bulk(tmp_path, mail_dsn, place)
    for month in MONTHS:
        bulk.fill(month, 700)
    run_together(write_one, [(bulk, month) for month in MONTHS])
    assert_exact(bulk, MONTHS)


def service(request: pytest.FixtureRequest, flavour: str) -> tuple[FakeS3Vectors, Place]:
    """Return a service that can have faults, and the place of its bucket."""
    fake: FakeS3Vectors = request.getfixturevalue(flavour)
    if flavour == "aws":
        return fake, Place(f"s3vectors://mail?region=eu-central-1&endpoint={fake.url}")
    url = f"supabase+http://127.0.0.1:{fake.port}/mail"
    return fake, Place(url, {"SUPABASE_SERVICE_KEY": TOKEN})


def killing(pid: int, call: int, trouble: Callable[[str], Fault | None]) -> Callable[..., object]:
    """Return a trouble that kills a writer at its n-th put, which is then carried out."""
    puts = 0

    def kill(operation: str) -> Fault | None:
        nonlocal puts
        puts += operation == "PutVectors"
        if puts == call and operation == "PutVectors":
            os.kill(pid, signal.SIGKILL)
            return Fault("cut after")
        return trouble(operation)

    return kill


def write_patiently(bulk: Bulk, month: str) -> None:
    """Write one month at any rate, without waits, with a client that soon gives up a call."""
    s3vectors.READ_TIMEOUT = 2.0
    botocore.endpoint.time = SimpleNamespace(sleep=lambda seconds: None)
    s3vectors.WRITES.per_second = 1e9
    bulk.write(month)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flavour", "count", "killed_at", "share"),
    [("aws", 6_000, 7, 0.15), ("supabase", 3_000, 3, 0.2)],
)
def test_all_vectors_survive_faults_and_a_kill(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    mail_dsn: str,
    flavour: str,
    count: int,
    killed_at: int,
    share: float,
) -> None:
    fake, where = service(request, flavour)
    bulk = Bulk(tmp_path, mail_dsn, where)
    bulk.fill(MONTHS[0], count)
    trouble = at_random(share, seed=7)
    fake.trouble = lambda operation: Fault("hang")  # until the pid is known
    first = start_process(write_patiently, bulk, MONTHS[0])
    assert first.pid is not None
    fake.trouble = killing(first.pid, killed_at, trouble)  # type: ignore[assignment]
    first.join()
    assert first.exitcode == -signal.SIGKILL
    assert 0 < len(fake.buckets["mail"]["bulk"].vectors) < count
    fake.trouble = trouble
    second = start_process(write_patiently, bulk, MONTHS[0])
    second.join()
    assert second.exitcode == 0
    assert {"status", "hang", "cut before", "cut after"} == fake.troubled.keys()
    fake.trouble = lambda operation: None
    assert_exact(bulk, MONTHS[:1])
    calls = fake.calls["PutVectors"]
    bulk.write(MONTHS[0])
    assert fake.calls["PutVectors"] == calls, "nothing is left to write"
