"""Clients of the S3 Vectors API at AWS and at Supabase, and their errors as ours.

What does not live here: what is asked of them (`s3vectors`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mail_assets.vectors.errors import VectorError, missing

# boto3 makes its clients at run time, from a service model.
Client: TypeAlias = Any

# Standard mode retries 429, 5xx and broken connections, waiting up to 20 s between attempts.
RETRIES = {"mode": "standard", "max_attempts": 8}

_REMEDIES = {
    400: "the service refuses the request; correct it",
    402: "a quota of the account is used up; raise it, or drop an index that is not needed",
    403: "check the credentials and their rights (on AWS a query needs s3vectors:GetVectors too)",
    429: "the service is busy even after retries; let fewer runs write at once",
}


def aws_client(region: str, endpoint: str | None = None) -> Client:
    """Return a client of AWS S3 Vectors; credentials come from boto3's standard chain."""
    config = Config(retries=RETRIES)
    return boto3.client("s3vectors", region_name=region, endpoint_url=endpoint, config=config)


def supabase_client(url: str, service_key: str) -> Client:
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
        config=Config(signature_version=UNSIGNED, retries=RETRIES),
    )
    client.meta.events.register("before-send.s3vectors.*", authorize)
    return client


class AlreadyExistsError(VectorError):
    """The bucket or index to be created is there."""


@contextmanager
def explained(label: str) -> Iterator[None]:
    """Turn boto3's errors into ours, about `label`."""
    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        raise _refusal(label, status, error.response["Error"]) from error
    except BotoCoreError as error:  # no credentials, no route, no answer
        raise VectorError(f"{label}: {error}; check the network and the credentials") from error


def _refusal(label: str, status: int, error: dict[str, str]) -> VectorError:
    if status == 404:
        return missing(label)
    what = f"{label}: HTTP {status} {error.get('Code', '')}: {error.get('Message', '')}"
    remedy = _REMEDIES.get(status, "the service failed even after retries; run again later")
    return (AlreadyExistsError if status == 409 else VectorError)(f"{what}; {remedy}")
