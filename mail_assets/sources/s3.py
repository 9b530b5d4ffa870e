"""Monthly archives under a prefix of an S3 bucket; the bucket is only read.

boto3 reads credentials, region and endpoint (AWS_ENDPOINT_URL) from the environment. The pipeline's
own copies of archives are in the store (`mail_assets.store`).
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError

from mail_assets.errors import name_some
from mail_assets.http.requests import is_transient
from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import CHUNK, save_archive
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged
from mail_assets.sources.urls import group_by_month, s3_location

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 5})
_REMEDIES = {
    "AccessDenied": "grant s3:ListBucket and s3:GetObject to these credentials",
    "NoSuchBucket": "check the bucket's name, and AWS_ENDPOINT_URL for a store not Amazon's",
    "NoSuchKey": "it was deleted after it was listed; try again",
    "PreconditionFailed": "it changed after it was listed; try again",
}
_TRANSIENT = frozenset({"NoSuchKey", "PreconditionFailed"})
_REMEDY = "check AWS_ENDPOINT_URL, AWS_REGION and the credentials"


class S3Source(ArchiveSource):
    """Objects directly under a prefix whose names end in a month; a version is the quoted ETag."""

    def __init__(self, list_name: str, url: str) -> None:
        super().__init__(list_name, url)
        self._bucket, self._prefix = s3_location(url)
        self._client = boto3.client("s3", config=_CONFIG)

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> ETag; two objects of one month have theirs joined by "+"."""
        etags = self._etags()
        months = group_by_month(etags, _file_name)
        return self.by_list_month(
            {month: "+".join(etags[key] for key in keys) for month, keys in months.items()}
        )

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's object; it must have the listed ETag. See ArchiveSource."""
        etags = self._etags()
        key = self.only_place(month, group_by_month(etags, _file_name))
        if key is None:
            return None
        url, etag = f"s3://{self._bucket}/{key}", etags[key]
        if etag == known:
            return Unchanged(etag, url)
        with self._boto_errors(month, url):
            found = self._client.get_object(Bucket=self._bucket, Key=key, IfMatch=etag)
            # closing(): the body's own context manager yields urllib3's stream, which does not
            # notice missing bytes
            with closing(found["Body"]) as body, self.refusing(month, url):
                size, sha256 = save_archive(body.iter_chunks(CHUNK), target, downloaded=True)
        return Fetched(target, etag, size, sha256, url)

    def _etags(self) -> dict[str, str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix, Delimiter="/"
        )
        with self._boto_errors(None, self.url):
            etags = {
                found["Key"]: found["ETag"] for page in pages for found in page.get("Contents", [])
            }
        months = group_by_month(etags, _file_name)
        others = sorted(etags.keys() - {key for keys in months.values() for key in keys})
        self.remark("left out, no month in the name", others)
        if others and not months:
            what = (
                f"{self.url} has no monthly archive, with a month in its name; found: "
                f"{name_some(others)}"
            )
            raise self.error(None, what)
        return etags

    @contextmanager
    def _boto_errors(self, month: ListMonth | None, url: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            raise self.error(
                month,
                f"{url}: S3 answers {code} (HTTP {status}); {_REMEDIES.get(code, _REMEDY)}",
                retryable=code in _TRANSIENT or is_transient(status),
            ) from error
        except BotoCoreError as error:
            raise self.error(
                month,
                f"{url}: {error}; {_REMEDY}",
                # retry if the answer is missing or incomplete, but not for missing credentials etc.
                retryable=isinstance(error, (HTTPClientError, IncompleteReadError)),
            ) from error


def _file_name(key: str) -> str:
    return key.rpartition("/")[2]
