"""What is particular to the services: errors by status, retries, quotas, short answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mail_assets.vectors.bucket import Bucket, open_bucket
from mail_assets.vectors.index import IndexSpec, Vector, VectorError
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors

SPEC = IndexSpec("mail-v1", 4, {"list": "string"})
VECTORS = [Vector(f"k{n}", np.eye(4, dtype=np.float32)[n % 4], {"list": "a"}) for n in range(12)]


@pytest.fixture(params=["aws", "supabase"])
def fake(request: pytest.FixtureRequest) -> FakeS3Vectors:
    server: FakeS3Vectors = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def bucket(fake: FakeS3Vectors) -> Bucket:
    if fake.flavour == "aws":
        return open_bucket(f"s3vectors://mail?region=us-east-1&endpoint={fake.url}")
    url = f"supabase+http://127.0.0.1:{fake.port}/mail"
    return open_bucket(url, {"SUPABASE_SERVICE_KEY": fake.token})


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (400, "correct it"),
        (402, "a quota of the account is used up"),
        (403, "check the credentials"),
        (409, "the service failed"),
    ],
)
def test_errors_are_told_apart_by_status_whatever_their_code(
    fake: FakeS3Vectors, bucket: Bucket, status: int, remedy: str
) -> None:
    index = bucket.index(SPEC)
    index.ensure()
    fake.faults = [(status, "SomeCode")]
    with pytest.raises(VectorError, match=f"mail-v1.*HTTP {status} SomeCode.*{remedy}"):
        index.put(VECTORS)
    assert fake.calls["PutVectors"] == 1


def test_throttling_and_outages_are_waited_out(fake: FakeS3Vectors, bucket: Bucket) -> None:
    index = bucket.index(SPEC)
    index.ensure()
    throttled = "TooManyRequestsException" if fake.flavour == "aws" else "SlowDown"
    fake.faults = [(429, throttled), (503, "ServiceUnavailable")]
    assert index.put(VECTORS) == 12
    assert fake.calls["PutVectors"] == 3


def test_a_full_bucket_is_an_error_that_names_the_quota(
    fake: FakeS3Vectors, bucket: Bucket
) -> None:
    fake.max_indexes = 1
    bucket.index(SPEC).ensure()
    with pytest.raises(VectorError, match=r"index one-more.*Maximum number of indexes"):
        bucket.index(replace(SPEC, name="one-more")).ensure()


def test_an_answer_cut_short_by_the_service_is_passed_on_as_it_is(
    fake: FakeS3Vectors, bucket: Bucket
) -> None:
    index = bucket.index(SPEC)
    index.ensure()
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


def test_values_arrive_bit_for_bit(fake: FakeS3Vectors, bucket: Bucket) -> None:
    values = np.random.default_rng(3).standard_normal((50, 4)).astype(np.float32)
    index = bucket.index(SPEC)
    index.ensure()
    index.put(Vector(f"k{n}", row, {}) for n, row in enumerate(values))
    got = index.get((f"k{n}" for n in range(50)), data=True)
    np.testing.assert_array_equal(np.stack([vector.values for vector in got.values()]), values)


def test_no_answer_is_an_error_that_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mail_assets.vectors.s3vectors_client.RETRIES", {"max_attempts": 1})
    with FakeS3Vectors("supabase") as fake:
        url = f"supabase+http://127.0.0.1:{fake.port}/mail"
    index = open_bucket(url, {"SUPABASE_SERVICE_KEY": "key"}).index(SPEC)
    with pytest.raises(VectorError, match=r"index mail-v1 in supabase.*check the network"):
        index.count()
