"""Clients of the S3 Vectors API at AWS and at Supabase: signing, retries, their errors as ours.

Errors and retries are decided by HTTP status, for the codes differ: a throttled write is
TooManyRequestsException at AWS and SlowDown at Supabase, both 429; boto3 alone would give up on a
code that it does not know, and would ignore Retry-After. All requests may be repeated: puts and
deletes by key, and a creation that was done already is a 409 that the caller expects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
)

from mail_assets.http.requests import RetryBudget, RetryPolicy, is_transient, retry_after
from mail_assets.vectors.errors import VectorError, missing_index

# boto3 makes its clients at run time, from a service model.
BotoClient: TypeAlias = Any

# No answer, or half of one. Permanent faults (TLS, a proxy) are among them, and fail quickly.
_BROKEN = (HTTPClientError, ConnectionError, IncompleteReadError)
# Seconds. A service that says nothing for so long has lost the request: it is sent again.
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 60.0

RETRIES = RetryPolicy(
    first_wait=0.5, longest_wait=20.0, jitter=1.0, attempts=8, longest_retry_after=60.0
)
# Of the process, not of one client or index: the account that a service limits is one.
_BUDGET = RetryBudget()

_REMEDIES = {
    400: "the service refuses the request; correct it",
    402: "a quota of the account is used up; raise it, or drop an index that is not needed",
    403: "check the credentials and their rights (on AWS a query needs s3vectors:GetVectors too)",
    429: "the service is busy even after retries; let fewer runs write at once",
}


def aws_client(region: str, endpoint: str | None = None) -> BotoClient:
    """Return a client of AWS S3 Vectors; credentials come from boto3's standard chain."""
    client = boto3.client("s3vectors", region_name=region, endpoint_url=endpoint, config=_config())
    _watch(client)
    return client


def supabase_client(url: str, service_key: str) -> BotoClient:
    """Return a client of the vector buckets of the Supabase project at `url`.

    `service_key` must carry the role service_role. It goes out as the bearer token, which the
    storage server reads, and as `apikey`, which the gateway of a hosted project reads.
    """

    def authorize(request: Any, **_: object) -> None:
        # Must return None: botocore takes any other value for the response.
        request.headers["Authorization"] = f"Bearer {service_key}"
        request.headers["apikey"] = service_key

    client = boto3.client(
        "s3vectors",
        region_name="us-east-1",  # part of a signature, and nothing is signed
        endpoint_url=f"{url}/storage/v1/vector",
        config=_config(signature_version=UNSIGNED),
    )
    client.meta.events.register("before-send.s3vectors.*", authorize)
    _watch(client)
    return client


def _watch(client: BotoClient) -> None:
    client.meta.events.register("needs-retry.s3vectors", _next_wait)
    client.meta.events.register("after-call.s3vectors", _refuse_foreign)


def _config(**settings: Any) -> Config:
    return Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"mode": "standard", "total_max_attempts": 1},  # ours is `_next_wait`
        **settings,
    )


def _next_wait(
    attempts: int,
    response: tuple[Any, Any] | None,
    caught_exception: Exception | None,
    **_: object,
) -> float | None:
    """Return seconds to wait before botocore sends a request again, None where it must not."""
    if response is None:  # no answer, or one that was cut off
        return _retry_wait(attempts, None) if isinstance(caught_exception, _BROKEN) else None
    answer, _ = response
    if not is_transient(answer.status_code):
        _BUDGET.refill()
        return None
    return _retry_wait(attempts, retry_after(answer.headers))


def _retry_wait(attempts: int, asked: float | None) -> float | None:
    wait = RETRIES.next_wait(attempts, asked)
    return wait if wait is not None and _BUDGET.take() else None


def _refuse_foreign(http_response: Any, parsed: dict[str, Any], **_: object) -> None:
    """Refuse a success that is no JSON: botocore takes it for empty, and so a write for done."""
    body = http_response.content
    if body and parsed.keys() <= {"ResponseMetadata"} and not isinstance(json.loads(body), dict):
        raise TypeError("no JSON object")


class AlreadyExistsError(VectorError):
    """The bucket or index to be created exists."""


@contextmanager
def boto_errors(label: str) -> Iterator[None]:
    """Turn boto3's errors, and those of reading its answers, into VectorError about `label`."""
    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        raise _refusal(label, status, error.response["Error"]) from error
    except BotoCoreError as error:  # no credentials, no route, no answer
        raise VectorError(f"{label}: {error}; check the network and the credentials") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VectorError(
            f"{label}: the answer is none of S3 Vectors ({type(error).__name__}: {error}); "
            "check the URL, and what proxies answer in the service's place"
        ) from error


def _refusal(label: str, status: int, error: dict[str, str]) -> VectorError:
    if status == 404:
        return missing_index(label)
    what = f"{label}: HTTP {status} {error.get('Code', '')}: {error.get('Message', '')}"
    remedy = _REMEDIES.get(status, "the service failed even after retries; run again later")
    return (AlreadyExistsError if status == 409 else VectorError)(f"{what}; {remedy}")
