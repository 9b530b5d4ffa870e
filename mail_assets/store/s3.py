"""Use a prefix of an S3 bucket as an object store.

To read archives on S3 as a source, see `mail_assets.sources.s3`.
"""

import datetime as dt
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import add_expect_header

from mail_assets.store.objects import ObjectStore, StoreError, check_key, check_prefix, key_fault

_REMEDY = "check AWS_ENDPOINT_URL, AWS_REGION and the credentials"
_GRANT = "grant s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject"
_WAIT = "the service is overloaded or down: run it again later, with fewer jobs"
# by S3's error code, or by HTTP status if the answer has no body, as with HeadObject
_REMEDIES = {
    "403": _GRANT,
    "AccessDenied": _GRANT,
    "NoSuchBucket": "create the bucket, or correct its name",
    "500": _WAIT,
    "503": _WAIT,
    "InternalError": _WAIT,
    "ServiceUnavailable": _WAIT,
    "SlowDown": _WAIT,
}


class S3Store(ObjectStore):
    """Objects under s3://bucket/prefix/; boto3 finds endpoint, region and credentials.

    Large files are uploaded in parts, and appear after the last part. Parts of killed writers are
    in no listing; a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) deletes them.
    """

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = boto3.client(
            "s3", config=Config(retries={"mode": "standard", "max_attempts": 5})
        )
        # Without "Expect: 100-continue": if the connection ends within the answer to it, botocore
        # (1.44.5) reads forever
        self._client.meta.events.unregister("before-call.s3", add_expect_header)

    def put(self, key: str, path: Path) -> None:
        """Upload the file; see ObjectStore."""
        with self._boto_errors(self.url(key)):
            self._client.upload_file(str(path), self._bucket, self._key(key))

    def put_bytes(self, key: str, data: bytes) -> None:
        """Upload the bytes; see ObjectStore."""
        with self._boto_errors(self.url(key)):
            self._client.put_object(Bucket=self._bucket, Key=self._key(key), Body=data)

    @contextmanager
    def fetch(self, key: str) -> Iterator[Path]:
        """Download to a temporary file, which is deleted when the block ends."""
        with tempfile.TemporaryDirectory(prefix="mail-assets-") as folder:
            path = Path(folder) / key.rpartition("/")[2]
            with self._boto_errors(self.url(key)):
                self._client.download_file(self._bucket, self._key(key), str(path))
            yield path

    def exists(self, key: str) -> bool:
        """Ask for the object's head; see ObjectStore."""
        try:
            self.size(key)
        except FileNotFoundError:
            return False
        return True

    def size(self, key: str) -> int:
        """Ask for the object's head; see ObjectStore."""
        return int(self._head(key)["ContentLength"])

    def modified(self, key: str) -> dt.datetime:
        """Ask for the object's head; see ObjectStore."""
        written: dt.datetime = self._head(key)["LastModified"]
        return written

    def delete(self, key: str) -> None:
        """Delete the object; see ObjectStore."""
        with self._boto_errors(self.url(key)):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(key))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """List the objects, a thousand per request; see ObjectStore."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + check_prefix(prefix)
        )
        with self._boto_errors(f"s3://{self._bucket}/{self._prefix}{prefix}"):
            for page in pages:
                for found in page.get("Contents", []):
                    key = found["Key"].removeprefix(self._prefix)
                    if key_fault(key) is None:  # others, such as "folder/", are not of this store
                        yield key

    def url(self, key: str) -> str:
        """Return the object's s3:// URL; see ObjectStore."""
        return f"s3://{self._bucket}/{self._key(key)}"

    def _head(self, key: str) -> dict[str, Any]:
        with self._boto_errors(self.url(key)):
            head: dict[str, Any] = self._client.head_object(Bucket=self._bucket, Key=self._key(key))
        return head

    def _key(self, key: str) -> str:
        return self._prefix + check_key(key)

    @contextmanager
    def _boto_errors(self, url: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("404", "NoSuchKey"):  # the status if the answer has no body
                raise FileNotFoundError(f"the store has no object {url}") from error
            raise StoreError(f"{url}: S3 answers {code}; {_REMEDIES.get(code, _REMEDY)}") from error
        except (BotoCoreError, Boto3Error) as error:
            raise StoreError(f"{url}: {error}; {_REMEDY}") from error
