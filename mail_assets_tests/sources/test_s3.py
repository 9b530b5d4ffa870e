"""Archives under an S3 prefix, against moto's server on the loopback."""

import gzip
import hashlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import IncompleteReadError

from mail_assets.month import ListMonth
from mail_assets.sources.s3 import S3Source
from mail_assets.sources.source import Fetched, SourceError, Unchanged
from mail_assets_tests.sources.samples import JANUARY
from mail_assets_tests.waits import LONG

MBOX = b"From ann@example.org Mon Jan 05 15:18:12 2026\nFrom: ann@example.org\n\nHello\n\n"
GZ = gzip.compress(MBOX)


def test_objects_directly_under_the_prefix_are_listed_by_month(s3: Any) -> None:
    for key in ("lists/x.202001.gz", "lists/README", "lists/old/x.202002", "lists2/x.202003"):
        s3.put_object(Bucket="mail", Key=key, Body=GZ)
    etag = s3.head_object(Bucket="mail", Key="lists/x.202001.gz")["ETag"]
    for url in ("s3://mail/lists", "s3://mail/lists/"):
        assert S3Source("hackers", url).versions() == {JANUARY: etag}


def test_listing_of_many_pages_is_read_to_its_end(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")
    months = [ListMonth("hackers", f"2020-{number:02d}") for number in range(1, 13)]
    for month in months:
        s3.put_object(Bucket="mail", Key=f"x.{month.month}", Body=b"")
    assert s3.list_objects_v2(Bucket="mail")["IsTruncated"]
    assert list(S3Source("hackers", "s3://mail").versions()) == months


def test_object_is_downloaded_byte_for_byte_and_once(s3: Any, tmp_path: Path) -> None:
    s3.put_object(Bucket="mail", Key="lists/x.202001.gz", Body=GZ)
    source = S3Source("hackers", "s3://mail/lists")
    etag = source.versions()[JANUARY]
    target = tmp_path / "target"
    url = "s3://mail/lists/x.202001.gz"
    sha256 = hashlib.sha256(GZ).hexdigest()
    assert source.fetch(JANUARY, target) == Fetched(target, etag, len(GZ), sha256, url)
    assert target.read_bytes() == GZ
    target.unlink()
    assert source.fetch(JANUARY, target, etag) == Unchanged(etag, url)
    assert not target.exists()
    s3.put_object(Bucket="mail", Key="lists/x.202001.gz", Body=MBOX)
    assert isinstance(source.fetch(JANUARY, target, etag), Fetched)


def test_month_without_an_object_is_none(s3: Any, tmp_path: Path) -> None:
    assert S3Source("hackers", "s3://mail").fetch(JANUARY, tmp_path / "target") is None


def test_two_objects_of_one_month_are_refused_by_name(s3: Any, tmp_path: Path) -> None:
    for key in ("x.202001", "x.202001.gz"):
        s3.put_object(Bucket="mail", Key=key, Body=MBOX)
    source = S3Source("hackers", "s3://mail")
    assert list(source.versions()) == [JANUARY]
    with pytest.raises(SourceError, match=r"month 2020-01: .*: x\.202001 and x\.202001\.gz"):
        source.fetch(JANUARY, tmp_path / "target")


def test_damaged_object_is_refused_and_nothing_is_stored(s3: Any, tmp_path: Path) -> None:
    s3.put_object(Bucket="mail", Key="x.202001.gz", Body=GZ[:-5])
    where = r"list hackers, month 2020-01: s3://mail/x\.202001\.gz is refused: gzip data "
    with pytest.raises(SourceError, match=f"{where}.*fetch the archive again") as found:
        S3Source("hackers", "s3://mail").fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "code"), [("put", "PreconditionFailed"), ("gone", "NoSuchKey")])
def test_object_that_changes_after_the_listing_is_refused(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, code: str
) -> None:
    s3.put_object(Bucket="mail", Key="x.202001", Body=MBOX)
    source = S3Source("hackers", "s3://mail")
    listed = source._etags()
    monkeypatch.setattr(source, "_etags", lambda: listed)
    if change == "put":
        s3.put_object(Bucket="mail", Key="x.202001", Body=MBOX + MBOX)
    else:
        s3.delete_object(Bucket="mail", Key="x.202001")
    with pytest.raises(SourceError, match=f"S3 answers {code} .*try again") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert list(tmp_path.iterdir()) == []


def test_missing_bucket_is_an_error_and_not_an_empty_list(s3: Any) -> None:
    with pytest.raises(
        SourceError, match=r"list hackers: .*NoSuchBucket.*AWS_ENDPOINT_URL"
    ) as found:
        S3Source("hackers", "s3://nothing").versions()
    assert not found.value.retryable


def test_missing_credentials_are_named(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    with pytest.raises(SourceError, match=r"locate credentials; check .*credentials") as found:
        S3Source("hackers", "s3://mail").versions()
    assert not found.value.retryable


def test_body_that_breaks_off_is_refused(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LONG)  # where nobody connects

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                head = b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: %d\r\n\r\n' % len(MBOX)
                connection.sendall(head + MBOX[:-1])

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        source = S3Source("hackers", "s3://mail")
        monkeypatch.setattr(source, "_etags", lambda: {"x.202001": '"a"'})
        with pytest.raises(
            SourceError, match=rf"month 2020-01: s3://mail/x\.202001: {len(MBOX) - 1} read"
        ) as found:
            source.fetch(JANUARY, tmp_path / "target")
        thread.join()
    assert isinstance(found.value.__cause__, IncompleteReadError)
    assert found.value.retryable
    assert list(tmp_path.iterdir()) == []
