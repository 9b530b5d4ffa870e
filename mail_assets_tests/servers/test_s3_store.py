"""The store on a real S3, and over a connection that fails."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from mail_assets.store.objects import ObjectStore, StoreError
from mail_assets.store.open import open_store
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.s3 import BUCKET
from mail_assets_tests.servers.faulty_proxy import ALL, BUSY, RESET, FaultyProxy, Trouble, repeat
from mail_assets_tests.waits import LONG

pytestmark = [pytest.mark.servers, pytest.mark.slow]

URL = f"s3://{BUCKET}/store"


def read(store: ObjectStore, key: str) -> bytes:
    with store.fetch(key) as path:
        return path.read_bytes()


def test_objects_are_put_listed_read_replaced_and_deleted(s3: Any, tmp_path: Path) -> None:
    store = open_store(URL)
    large = os.urandom(20 << 20)
    (tmp_path / "large").write_bytes(large)
    store.put("a/é", tmp_path / "large")
    store.put_bytes("a/b", b"first")
    store.put_bytes("a/b", b"")
    store.put_bytes("b", b"x")
    assert [*store.keys()] == ["a/b", "a/é", "b"]
    assert [*store.keys("a/")] == ["a/b", "a/é"]
    assert (read(store, "a/é"), store.size("a/é")) == (large, len(large))
    assert (read(store, "a/b"), store.size("a/b")) == (b"", 0)
    for _ in range(2):
        store.delete("a/b")
    assert not store.exists("a/b")
    with pytest.raises(FileNotFoundError, match=f"no object {URL}/a/b"):
        read(store, "a/b")


def test_missing_bucket_or_wrong_key_has_a_remedy(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match=r"s3://nothing/a: .*NoSuchBucket; create the bucket"):
        open_store("s3://nothing").put_bytes("a", b"")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers keys
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreError, match=r"SignatureDoesNotMatch; check .*credentials"):
        open_store(URL).put_bytes("a", b"")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    with pytest.raises(StoreError, match=r"InvalidAccessKeyId; check .*credentials"):
        open_store(URL).put_bytes("a", b"")


def claim(number: int, won: Any, barrier: Any) -> None:
    """Put an object that must not exist, at the same time as others."""
    client = boto3.client("s3")
    for turn in range(8):
        barrier.wait()
        try:
            client.put_object(Bucket=BUCKET, Key=f"{turn}", Body=str(number), IfNoneMatch="*")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412):
                raise
        else:
            won.put((turn, number))


def test_exactly_one_of_several_writers_claims_a_key(s3: Any) -> None:
    """Commits of LanceDB rely on this."""
    won, barrier = FORKS.Queue(), FORKS.Barrier(3, timeout=LONG)
    writers = [start_process(claim, n, won, barrier) for n in range(3)]
    winners = dict(won.get(timeout=LONG) for _ in range(8))
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert won.empty()
    for turn, number in winners.items():
        body = s3.get_object(Bucket=BUCKET, Key=f"{turn}")["Body"].read()
        assert body == str(number).encode()


@pytest.mark.parametrize("seed", [1, 2])
def test_objects_survive_a_bad_connection(proxy: FaultyProxy, tmp_path: Path, seed: int) -> None:
    store = open_store(URL)
    bodies = {f"{n}": os.urandom(50_000) for n in range(20)} | {"large": os.urandom(12 << 20)}
    proxy.trouble = Trouble(0.3, ALL, seed)
    for key, body in bodies.items():
        proxy.reset_connections()  # or one that is not disturbed would serve all
        (tmp_path / "file").write_bytes(body)
        repeat(partial(store.put, key, tmp_path / "file"))
    for key, body in bodies.items():
        proxy.reset_connections()
        assert repeat(partial(read, store, key)) == body
        assert repeat(partial(store.size, key)) == len(body)
    assert repeat(lambda: sorted(store.keys())) == sorted(bodies)
    assert {*proxy.happened} == {*ALL}, "every kind of fault was met"


Work = Callable[[ObjectStore], object]


@pytest.mark.parametrize("work", [
    lambda store: store.put_bytes("b", b"other"),
    lambda store: read(store, "a"),
    lambda store: store.size("a"),
    lambda store: store.delete("a"),
    lambda store: [*store.keys()],
], ids=["put", "fetch", "size", "delete", "keys"])  # fmt: skip
@pytest.mark.parametrize(
    ("kind", "said"),
    [(BUSY, "(SlowDown|503); .*run it again later"), (RESET, "(closed|reset|broken|abort).*")],
)
def test_outage_is_named_with_object_and_remedy(
    proxy: FaultyProxy, work: Work, kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    store = open_store(URL)
    store.put_bytes("a", b"kept")
    proxy.reset_connections()
    proxy.trouble = Trouble(1.0, [kind], latest=1)
    with pytest.raises(StoreError, match=f"(?i){URL}/?[ab]?: .*{said}"):
        work(store)
    proxy.trouble = Trouble()
    assert [*store.keys()] == ["a"]
    assert read(store, "a") == b"kept"
