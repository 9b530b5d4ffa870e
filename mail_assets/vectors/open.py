"""Check the URL of a vector bucket, and open the bucket.

    lance:PATH                                  LanceDB in a folder
    lance:s3://BUCKET/PREFIX                    LanceDB on S3-like storage (AWS_ variables)
    s3vectors://BUCKET?region=REGION            AWS S3 Vectors (boto3's standard credentials)
    supabase://HOST/BUCKET                      Supabase (SUPABASE_SERVICE_KEY)
    pgvector:                                   the Postgres of the DSN passed in

`s3vectors` also takes `&endpoint=URL`; `supabase+http://127.0.0.1:PORT/BUCKET` is a server on this
machine. A URL never holds credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, urlsplit

from mail_assets.environment import VARIABLES
from mail_assets.http.requests import is_loopback
from mail_assets.lance import check_lance_path, lance_location

if TYPE_CHECKING:  # settings check URLs at every start; numpy and the backends load slowly
    from mail_assets.vectors.index import Bucket

SCHEMES = (
    "lance:PATH, lance:s3://BUCKET/PREFIX, s3vectors://BUCKET?region=REGION, "
    "supabase://HOST/BUCKET, pgvector:"
)

_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", re.ASCII)


def open_bucket(
    url: str, environ: Mapping[str, str] | None = None, *, dsn: str | None = None
) -> Bucket:
    """Open the bucket at `url`, without a request.

    `environ` (by default the process's) gives SUPABASE_SERVICE_KEY and, for Lance on S3-like
    storage, the AWS_ variables. `dsn` is for `pgvector:`.
    """
    return _opener(url)(VARIABLES if environ is None else environ, dsn)


def check_bucket_url(url: str) -> None:
    """Check a URL as a setting, without opening anything.

    Raises:
        ValueError: with a short reason that never quotes a credential.
    """
    _opener(url)


_Opener = Callable[[Mapping[str, str], str | None], "Bucket"]


def _opener(url: str) -> _Opener:
    # The openers import their backend when they are called: LanceDB alone takes a second.
    scheme, _, rest = url.partition(":")
    if scheme == "lance":
        return _lance(rest)
    if scheme == "s3vectors":
        return _s3vectors(urlsplit(url))
    if scheme in ("supabase", "supabase+http"):
        return _supabase(urlsplit(url))
    if scheme == "pgvector":
        return _pgvector(rest)
    raise ValueError(f"unknown kind of vector bucket {scheme[:20]!r}; use one of {SCHEMES}")


def _lance(path: str) -> _Opener:
    check_lance_path(path)

    def opener(environ: Mapping[str, str], dsn: str | None) -> Bucket:
        from mail_assets.vectors.lance import LanceBucket

        return LanceBucket(*lance_location(path, environ))

    return opener


def _s3vectors(parts: SplitResult) -> _Opener:
    _refuse_credentials(parts)
    _check_bucket_name(parts.netloc)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    region, endpoint = options.pop("region", ""), options.pop("endpoint", None)
    if options or not region or parts.path.strip("/"):
        raise ValueError("use s3vectors://BUCKET?region=REGION, optionally with &endpoint=URL")
    if endpoint is not None:
        where = urlsplit(endpoint)
        _refuse_credentials(where)
        _require_https(where.scheme, where.hostname)

    def opener(environ: Mapping[str, str], dsn: str | None) -> Bucket:
        from mail_assets.vectors.s3vectors import S3VectorsBucket, aws_client

        client = aws_client(region, endpoint)
        return S3VectorsBucket(client, parts.netloc, f"s3vectors://{parts.netloc}?region={region}")

    return opener


def _supabase(parts: SplitResult) -> _Opener:
    _refuse_credentials(parts)
    name = parts.path.strip("/")
    if not parts.hostname or parts.query:
        raise ValueError("use supabase://HOST/BUCKET, without options")
    _check_bucket_name(name)
    scheme = "https" if parts.scheme == "supabase" else "http"
    _require_https(scheme, parts.hostname)

    def opener(environ: Mapping[str, str], dsn: str | None) -> Bucket:
        from mail_assets.vectors.s3vectors import S3VectorsBucket, supabase_client

        key = environ.get("SUPABASE_SERVICE_KEY", "").strip()
        if not re.fullmatch(r"[!-~]+", key):
            # A header with another character fails with a message that quotes it.
            raise ValueError("set SUPABASE_SERVICE_KEY to the project's service_role key")
        client = supabase_client(f"{scheme}://{parts.netloc}", key)
        return S3VectorsBucket(client, name, f"{parts.scheme}://{parts.netloc}/{name}")

    return opener


def _pgvector(rest: str) -> _Opener:
    if rest:
        raise ValueError("use pgvector: without a path; the DSN is a setting of its own")

    def opener(environ: Mapping[str, str], dsn: str | None) -> Bucket:
        from mail_assets.vectors.pgvector import PgvectorBucket

        if not dsn:
            raise ValueError("pgvector: needs the DSN of a Postgres")
        return PgvectorBucket(dsn)

    return opener


def _check_bucket_name(name: str) -> None:
    if not _BUCKET_NAME.fullmatch(name):
        raise ValueError(f"bucket name {name!r}: use 3 to 63 of a-z, 0-9 and '-'")


def _refuse_credentials(parts: SplitResult) -> None:
    if "@" in parts.netloc:
        raise ValueError("a vector bucket's URL holds no credentials: set them in the environment")


def _require_https(scheme: str, host: str | None) -> None:
    # Keys and mail are not sent unencrypted, except to this machine.
    if not host or not (scheme == "https" or (scheme == "http" and is_loopback(host))):
        raise ValueError("use https, or http to 127.0.0.1 only")
