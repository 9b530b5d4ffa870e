"""AWS and Supabase: errors by status, retries, quotas, short answers, the rate of writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mail_assets.http.requests import RetryBudget
from mail_assets.vectors import s3vectors
from mail_assets.vectors.index import Bucket, IndexSpec, Vector, VectorError, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.vectors.s3vectors import WriteRate
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors, Fault

SPEC = IndexSpec("mail-v1", 4, {"list": "string"})
VECTORS = [Vector(f"k{n}", np.eye(4, dtype=np.float32)[n % 4], {"list": "a"}) for n in range(12)]


@pytest.fixture(params=["aws", "supabase"])
def fake(request: pytest.FixtureRequest) -> FakeS3Vectors:
    server: FakeS3Vectors = request.getfixturevalue(request.param)
    return server


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before retries, which botocore would have slept."""
    waits: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=waits.append))
    return waits


def open_fake(fake: FakeS3Vectors) -> Bucket:
    if fake.flavour == "aws":
        return open_bucket(f"s3vectors://mail?region=us-east-1&endpoint={fake.url}")
    url = f"supabase+http://127.0.0.1:{fake.port}/mail"
    return open_bucket(url, {"SUPABASE_SERVICE_KEY": fake.token})


@pytest.fixture
def bucket(fake: FakeS3Vectors) -> Bucket:
    return open_fake(fake)


@pytest.fixture
def index(bucket: Bucket) -> VectorIndex:
    """An index that the service has made."""
    made = bucket.index(SPEC)
    made.ensure()
    return made


@pytest.mark.parametrize(("status", "remedy"), [
    (400, "correct it"),
    (402, "a quota of the account is used up"),
    (403, "check the credentials"),
    (409, "the service failed"),
])  # fmt: skip
def test_errors_are_classified_by_status_not_by_code(
    fake: FakeS3Vectors, index: VectorIndex, status: int, remedy: str
) -> None:
    fake.faults = [Fault(status=status, code="SomeCode")]
    with pytest.raises(VectorError, match=f"mail-v1.*HTTP {status} SomeCode.*{remedy}"):
        index.put(VECTORS)
    assert fake.calls["PutVectors"] == 1


def test_throttling_and_outages_are_waited_out(fake: FakeS3Vectors, index: VectorIndex) -> None:
    fake.faults = [Fault(status=429, code="NeverHeardOf"), Fault(), Fault(status=504)]
    assert index.put(VECTORS) == 12
    assert fake.calls["PutVectors"] == 4


def test_service_that_asks_for_an_hour_is_given_up(
    fake: FakeS3Vectors, index: VectorIndex, waits: list[float]
) -> None:
    fake.faults = [Fault(status=503, retry_after="3600")]
    with pytest.raises(VectorError, match=r"HTTP 503.*run again later"):
        index.put(VECTORS)
    assert waits == []


def test_process_stops_asking_a_service_that_is_down(
    fake: FakeS3Vectors, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = RetryBudget()
    monkeypatch.setattr(s3vectors, "_BUDGET", budget)
    while budget.take():
        pass
    fake.faults = [Fault(status=503)]
    with pytest.raises(VectorError, match=r"HTTP 503"):
        index.put(VECTORS)
    assert fake.calls["PutVectors"] == 1
    for _ in range(RetryBudget.COST):
        assert index.put(VECTORS) == 12
    fake.faults = [Fault(status=503)]
    assert index.put(VECTORS) == 12


def test_outage_is_reported_with_its_status(
    fake: FakeS3Vectors, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3vectors, "RETRIES", replace(s3vectors.RETRIES, attempts=2))
    fake.trouble = lambda operation: Fault(status=503)
    with pytest.raises(VectorError, match=r"HTTP 503.*even after retries; run again later"):
        index.put(VECTORS)
    assert fake.calls["PutVectors"] == 2


@pytest.mark.parametrize("kind", ["hang", "cut before", "cut after"])
def test_call_without_an_answer_is_made_again(
    fake: FakeS3Vectors, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(s3vectors, "READ_TIMEOUT", 0.2)
    index = open_fake(fake).index(SPEC)
    fault = Fault(kind)  # type: ignore[arg-type]
    fake.faults = [fault]
    index.ensure()
    fake.faults = [fault]
    index.put(VECTORS)
    fake.faults = [fault]
    index.delete(["k3"])
    fake.faults = [fault]
    assert index.get(["k3", "k4"], data=True).keys() == {"k4"}
    fake.faults = [fault]
    assert len(index.query(VECTORS[0].values, 20)) == 11
    fake.faults = [fault]
    assert index.count() == 11
    fake.faults = [fault]
    index.drop()
    assert fake.troubled[kind] == 7


def test_creation_whose_answer_was_lost_is_no_conflict(fake: FakeS3Vectors) -> None:
    fake.trouble = lambda operation: (
        Fault("cut after")
        if operation.startswith("Create") and fake.calls[operation] == 1
        else None
    )
    index = open_fake(fake).index(SPEC)
    index.ensure()
    index.put(VECTORS)
    assert index.count() == 12
    assert fake.troubled["cut after"] == 2


READS: dict[str, Callable[[Bucket, VectorIndex], object]] = {
    "query": lambda bucket, index: index.query(VECTORS[0].values, 5),
    "get": lambda bucket, index: index.get(["k1"]),
    "keys": lambda bucket, index: [*index.keys()],
    "ensure": lambda bucket, index: index.ensure(),
    "describe": lambda bucket, index: index.describe(),
    "indexes": lambda bucket, index: bucket.indexes(),
}
WRITES: dict[str, Callable[[Bucket, VectorIndex], object]] = {
    "put": lambda bucket, index: index.put(VECTORS),
    "delete": lambda bucket, index: index.delete(["k1"]),
    "drop": lambda bucket, index: index.drop(),
}
#: What is no answer of any call, what is none of a call that reads, and what is half of one.
FOREIGN = (b"<html>Sign in</html>", b'{"vectors": [{"key": "k1", "dist', b"null", b"[]", b"\xff")
EMPTY = (b"", b"{}", b'{"vectors": null, "indexes": null, "index": null}')
LACKING = {
    "query": b'{"vectors": [{"key": "k1"}]}',
    "get": b'{"vectors": [{"metadata": {}}]}',
    "keys": b'{"vectors": ["k1"]}',
    "ensure": b'{"index": {"dimension": 4}}',
    "describe": b'{"index": {"dimension": 4}}',
    "indexes": b'{"indexes": [{}]}',
}


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_success_from_another_service_is_refused(
    fake: FakeS3Vectors, bucket: Bucket, index: VectorIndex, call: str
) -> None:
    """Writes too: their usual answers are empty, so a foreign one would pass for done."""
    index.put(VECTORS)
    bodies = [*FOREIGN, *EMPTY, LACKING[call]] if call in READS else FOREIGN
    for body in bodies:
        fake.faults = [Fault("body", body=body)] * 4  # as many as keys() may use: one a segment
        with pytest.raises(
            VectorError, match=r"mail.*: the answer is not one of S3 Vect.*check the U"
        ):
            (READS | WRITES)[call](bucket, index)
        fake.faults = []
    assert index.count() == 12


def test_full_bucket_is_an_error_that_names_the_quota(fake: FakeS3Vectors, bucket: Bucket) -> None:
    fake.max_indexes = 1
    bucket.index(SPEC).ensure()
    with pytest.raises(VectorError, match=r"index one-more.*Maximum number of indexes"):
        bucket.index(replace(SPEC, name="one-more")).ensure()


def test_short_answer_of_service_is_returned(fake: FakeS3Vectors, index: VectorIndex) -> None:
    index.put(VECTORS)
    fake.under_return = 0.5
    assert len(index.query(VECTORS[0].values, 10, {"list": "a"})) == 5
    assert len(index.query(VECTORS[0].values, 10)) == 10


def test_ensure_twice_creates_once(fake: FakeS3Vectors, bucket: Bucket) -> None:
    for _ in range(2):
        bucket.index(SPEC).ensure()
    # The first finds no bucket, makes it, and tries again.
    assert fake.calls["CreateVectorBucket"] == 1
    assert fake.calls["CreateIndex"] == 2


def test_values_arrive_bit_for_bit(fake: FakeS3Vectors, index: VectorIndex) -> None:
    values = np.random.default_rng(3).standard_normal((50, 4)).astype(np.float32)
    index.put(Vector(f"k{n}", row, {}) for n, row in enumerate(values))
    got = index.get((f"k{n}" for n in range(50)), data=True)
    np.testing.assert_array_equal(np.stack([vector.values for vector in got.values()]), values)


def test_no_answer_is_an_error_that_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3vectors, "RETRIES", replace(s3vectors.RETRIES, attempts=1))
    with FakeS3Vectors("supabase") as fake:
        url = f"supabase+http://127.0.0.1:{fake.port}/mail"
    index = open_bucket(url, {"SUPABASE_SERVICE_KEY": "key"}).index(SPEC)
    with pytest.raises(VectorError, match=r"index mail-v1 in supabase.*check the network"):
        index.count()


class Clock:
    """Time that passes when somebody sleeps."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_writes_are_held_to_the_rate_after_a_burst() -> None:
    clock = Clock()
    rate = WriteRate(1_000, burst=2_000, clock=clock, sleep=clock.sleep)
    for _ in range(4):
        rate.take(500)
    assert clock.now == 100
    for _ in range(10):
        rate.take(500)
    assert clock.now == pytest.approx(105)


def test_idle_time_gives_no_more_than_the_burst() -> None:
    clock = Clock()
    rate = WriteRate(1_000, burst=2_000, clock=clock, sleep=clock.sleep)
    clock.sleep(3_600)
    rate.take(2_000)
    rate.take(1_000)
    assert clock.now == pytest.approx(3_701)
