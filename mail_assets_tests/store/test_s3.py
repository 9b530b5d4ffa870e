"""Particulars of S3: prefixes, downloads, pages of a listing, a missing bucket."""

from pathlib import Path
from typing import Any

import pytest

from mail_assets.store.objects import StoreError
from mail_assets.store.open import open_store


def test_prefix_precedes_every_key_and_hides_neighbours(s3: Any) -> None:
    s3.put_object(Bucket="mail", Key="a/prefix2/x", Body=b"")
    s3.put_object(Bucket="mail", Key="a/prefix/", Body=b"")  # as consoles make folders
    s3.put_object(Bucket="mail", Key="a/prefix/.hidden", Body=b"")
    store = open_store("s3://mail/a/prefix")
    store.put_bytes("k", b"x")
    assert store.url("k") == "s3://mail/a/prefix/k"
    assert s3.get_object(Bucket="mail", Key="a/prefix/k")["Body"].read() == b"x"
    assert list(store.keys()) == ["k"]


def test_download_is_gone_after_its_block(s3: Any) -> None:
    store = open_store("s3://mail")
    store.put_bytes("a/2024-05.gz", b"x")
    with store.fetch("a/2024-05.gz") as path:
        assert path.name == "2024-05.gz"
    assert not path.parent.exists()


def test_listing_of_many_pages_is_read_to_its_end(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")
    keys = [f"{number:02d}" for number in range(12)]
    for key in keys:
        s3.put_object(Bucket="mail", Key=key, Body=b"")
    assert s3.list_objects_v2(Bucket="mail")["IsTruncated"]
    assert list(open_store("s3://mail").keys()) == keys


def test_missing_bucket_is_named_with_its_remedy(s3: Any, tmp_path: Path) -> None:
    store = open_store("s3://nothing")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with pytest.raises(StoreError, match=r"s3://nothing/a: .*NoSuchBucket"):
        store.put_bytes("a", b"")
    with pytest.raises(StoreError, match=r"s3://nothing/a: .*NoSuchBucket"):
        store.put("a", path)
    with pytest.raises(StoreError, match=r"s3://nothing/.*NoSuchBucket; make the bucket first"):
        list(store.keys())
