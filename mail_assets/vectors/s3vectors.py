"""Vector indexes at AWS S3 Vectors or at Supabase, through one boto3 client.

The code uses only what both services support: top_k up to 100 in one page, no $startsWith, no full
text, no index modes, no ARNs.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_S3_Vectors.html
https://supabase.com/docs/guides/storage/vector/introduction

The HTTP status decides on errors and retries, because error codes differ: a throttled write is
TooManyRequestsException at AWS and SlowDown at Supabase, both with status 429. boto3 alone would
not retry unknown codes and would ignore Retry-After. All requests may be repeated: puts and deletes
are by key, and repeating a creation returns a 409, which the caller expects.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import boto3
import numpy as np
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
from mail_assets.vectors.filters import Filter, nest_conditions
from mail_assets.vectors.index import (
    Capabilities,
    Floats,
    IndexSpec,
    Match,
    Metadata,
    MissingIndexError,
    Vector,
    VectorError,
    VectorIndex,
    missing_index,
    restore_int,
)

# boto3 makes its clients at run time, from a service model.
BotoClient: TypeAlias = Any
WireObject: TypeAlias = dict[str, Any]

# No answer, or half of one. Permanent faults (TLS, a proxy) are among these, and fail quickly.
_BROKEN = (HTTPClientError, ConnectionError, IncompleteReadError)
# Seconds. A service that is silent for so long has lost the request; it is sent again.
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 60.0

RETRIES = RetryPolicy(
    first_wait=0.5, longest_wait=20.0, jitter=1.0, attempts=8, longest_retry_after=60.0
)
# One for the process: services limit an account, not a client or an index.
_BUDGET = RetryBudget()

_REMEDIES = {
    400: "the service refuses the request; correct it",
    402: "a quota of the account is used up; raise it, or drop an index that is not needed",
    403: "check the credentials and their rights (on AWS a query needs s3vectors:GetVectors too)",
    429: "the service is busy even after retries; let fewer runs write at once",
}

#: Segments of the key space that are listed in parallel.
SEGMENTS = 4


class S3VectorsIndex(VectorIndex):
    """One index of a vector bucket."""

    capabilities = Capabilities(
        max_batch=500,
        max_bytes=19 << 20,  # the body may have 20 MiB
        max_get=100,
        max_top_k=100,
        max_dimension=4096,
        list_filter=False,
    )

    def __init__(self, spec: IndexSpec, client: BotoClient, bucket_name: str, where: str) -> None:
        super().__init__(spec, where)
        self._client = client
        self._bucket_name = bucket_name
        self._where = where

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the bucket and the index, or verify the existing index."""
        try:
            existing = self._index()
        except MissingIndexError:
            before()
            self._create()
            existing = self._index()
        self._verify(existing)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order, listing segments in parallel."""
        # A page has 1,000 keys. One page of each segment is fetched at a time, so that an index of
        # any size is listed in little memory.
        segments = [self._pages(segment) for segment in range(SEGMENTS)]
        with ThreadPoolExecutor(SEGMENTS) as pool:
            while segments:
                pages = [*pool.map(lambda pages: next(pages, None), segments)]
                for page in pages:
                    yield from page or ()
                segments = [s for s, page in zip(segments, pages, strict=True) if page is not None]

    def count(self) -> int:
        """Return the number of vectors by listing them: the services do not count."""
        return sum(1 for _ in self.keys())

    def describe(self) -> dict[str, str | int]:
        """Return backend, index, dimension, metric and mode, as the service reports them."""
        index = self._index()
        return {
            "backend": "s3vectors",
            "index": self.spec.name,
            "dimension": index.dimension,
            "metric": index.metric,
            "search": index.mode,
        }

    def drop(self) -> None:
        """Delete the index, if it exists, but not the bucket."""
        with suppress(MissingIndexError):
            self._call("delete_index")

    def maintain(self, *, erase: bool = False) -> None:
        """Do nothing: the service keeps its index current and deletes immediately."""

    def _put(self, batch: Sequence[Vector]) -> None:
        WRITES.take(len(batch))
        self._call("put_vectors", vectors=[_vector_to_wire(vector) for vector in batch])

    def _delete(self, keys: Sequence[str], among: Filter | None) -> None:
        WRITES.take(len(keys))
        self._call("delete_vectors", keys=list(keys))

    def _get(self, keys: Sequence[str], data: bool, among: Filter | None) -> Iterable[Vector]:
        answer = self._call("get_vectors", keys=list(keys), returnData=data, returnMetadata=True)
        with _boto_errors(self.label):
            return [_vector_from_wire(vector) for vector in answer["vectors"]]

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        where = {} if filter is None else {"filter": nest_conditions(filter)}
        answer = self._call(
            "query_vectors",
            topK=top_k,
            queryVector={"float32": vector.tolist()},
            returnDistance=True,
            returnMetadata=metadata,
            **where,
        )
        with _boto_errors(self.label):
            return [
                Match(found["key"], found["distance"], _metadata(found))
                for found in answer["vectors"]
            ]

    def _index(self) -> StoredIndex:
        answer = self._call("get_index")
        with _boto_errors(self.label):
            return _index_from_wire(answer["index"])

    def _create(self) -> None:
        try:
            self._create_index()
        except MissingIndexError:
            with suppress(AlreadyExistsError), _boto_errors(self._where):
                self._client.create_vector_bucket(vectorBucketName=self._bucket_name)
            self._create_index()

    def _create_index(self) -> None:
        settings: WireObject = {}
        if self.spec.non_filterable:  # Supabase refuses an empty list
            hidden = list(self.spec.non_filterable)
            settings["metadataConfiguration"] = {"nonFilterableMetadataKeys": hidden}
        with suppress(AlreadyExistsError):  # another process was first; ensure() verifies it
            self._call(
                "create_index",
                dataType="float32",
                dimension=self.spec.dimension,
                distanceMetric="cosine",
                **settings,
            )

    def _verify(self, index: StoredIndex) -> None:
        exists = (index.dimension, index.metric, index.hidden)
        wanted = (self.spec.dimension, "cosine", sorted(self.spec.non_filterable))
        if exists != wanted:
            raise self.mismatch(exists, wanted)

    def _pages(self, segment: int) -> Iterator[list[str]]:
        pages = self._client.get_paginator("list_vectors").paginate(
            vectorBucketName=self._bucket_name,
            indexName=self.spec.name,
            segmentCount=SEGMENTS,
            segmentIndex=segment,
            PaginationConfig={"PageSize": 1000},
        )
        with _boto_errors(self.label):
            for page in pages:
                yield [vector["key"] for vector in page["vectors"]]

    def _call(self, operation: str, **arguments: object) -> WireObject:
        address = {"vectorBucketName": self._bucket_name, "indexName": self.spec.name}
        with _boto_errors(self.label):
            answer: WireObject = getattr(self._client, operation)(**address, **arguments)
        return answer


class S3VectorsBucket:
    """A vector bucket reached through `client`; the first `ensure` creates it if it is missing."""

    def __init__(self, client: BotoClient, name: str, where: str) -> None:
        self._client = client
        self._name = name
        self.where = where

    def index(self, spec: IndexSpec) -> S3VectorsIndex:
        """Return the index of `spec`; nothing is sent yet."""
        return S3VectorsIndex(spec, self._client, self._name, self.where)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes; none if there is no bucket yet."""
        pages = self._client.get_paginator("list_indexes").paginate(vectorBucketName=self._name)
        with suppress(MissingIndexError), _boto_errors(self.where):
            return sorted(index["indexName"] for page in pages for index in page["indexes"])
        return []


class WriteRate:
    """A token bucket for the whole process: `take` waits until it may write so many vectors."""

    def __init__(
        self,
        per_second: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.per_second = per_second
        self._burst = burst
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._tokens, self._at = burst, clock()

    def take(self, count: int) -> None:
        """Wait for `count` tokens. They are taken before the wait, so that waiters queue fairly."""
        with self._lock:
            now = self._clock()
            refilled = self._tokens + (now - self._at) * self.per_second
            self._tokens, self._at = min(self._burst, refilled) - count, now
            debt = -self._tokens
        if debt > 0:
            self._sleep(debt / self.per_second)


# AWS accepts 2,500 vectors per second and index, puts and deletes together; Supabase forwards them
# to AWS. If several processes write, the service limits them with status 429.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html
WRITES = WriteRate(per_second=2_500, burst=2_500)


class StoredIndex(NamedTuple):
    """An index as the service describes it; `hidden` are the non-filterable fields."""

    dimension: int
    metric: str
    hidden: list[str]
    mode: str


def _vector_to_wire(vector: Vector) -> WireObject:
    # The shortest decimals that give the same float32. With 17 digits the body would be 1.6 times
    # as long, and the client slower.
    values = [float(str(value)) for value in vector.values]
    wire: WireObject = {"key": vector.key, "data": {"float32": values}}
    return wire | ({"metadata": vector.metadata} if vector.metadata else {})


def _vector_from_wire(wire: WireObject) -> Vector:
    values = np.asarray(wire.get("data", {}).get("float32", []), dtype=np.float32)
    return Vector(wire["key"], values, _metadata(wire))


def _index_from_wire(wire: WireObject) -> StoredIndex:
    hidden = wire.get("metadataConfiguration", {}).get("nonFilterableMetadataKeys", [])
    mode = str(wire.get("indexMode", "service")).lower()
    return StoredIndex(wire["dimension"], wire["distanceMetric"], sorted(hidden), mode)


def _metadata(wire: WireObject) -> Metadata:
    return {name: restore_int(value) for name, value in wire.get("metadata", {}).items()}


def aws_client(region: str, endpoint: str | None = None) -> BotoClient:
    """Return a client of AWS S3 Vectors; credentials come from boto3's standard chain."""
    client = boto3.client("s3vectors", region_name=region, endpoint_url=endpoint, config=_config())
    _watch(client)
    return client


def supabase_client(url: str, service_key: str) -> BotoClient:
    """Return a client of the vector buckets of the Supabase project at `url`.

    `service_key` must have the role service_role. It is sent as the bearer token, which the storage
    server reads, and as `apikey`, which the gateway of a hosted project reads.
    """

    def authorize(request: Any, **_: object) -> None:
        # Must return None: botocore uses any other value as the response.
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
    attempts: int, response: tuple[Any, Any] | None, caught_exception: Exception | None, **_: object
) -> float | None:
    """Return seconds to wait before botocore sends a request again, None if it must not."""
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
    """Refuse a success that is not JSON; botocore would take it as an empty answer."""
    body = http_response.content
    if body and parsed.keys() <= {"ResponseMetadata"} and not isinstance(json.loads(body), dict):
        raise TypeError("no JSON object")


class AlreadyExistsError(VectorError):
    """The bucket or index to be created exists already."""


@contextmanager
def _boto_errors(label: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        raise _refusal(label, status, error.response["Error"]) from error
    except BotoCoreError as error:  # no credentials, no route, no answer
        raise VectorError(f"{label}: {error}; check the network and the credentials") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VectorError(
            f"{label}: the answer is not one of S3 Vectors ({type(error).__name__}: {error}); "
            "check the URL, and whether a proxy answers in the service's place"
        ) from error


def _refusal(label: str, status: int, error: dict[str, str]) -> VectorError:
    if status == 404:
        return missing_index(label)
    what = f"{label}: HTTP {status} {error.get('Code', '')}: {error.get('Message', '')}"
    remedy = _REMEDIES.get(status, "the service failed even after retries; run again later")
    return (AlreadyExistsError if status == 409 else VectorError)(f"{what}; {remedy}")
