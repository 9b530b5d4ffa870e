"""Vector buckets of AWS S3 Vectors and of Supabase: one API, one boto3 client, two ways to sign.

The code keeps to what both serve: top_k up to 100 in one page, no $startsWith, no full text, no
index modes, no ARNs. Errors are told apart by HTTP status, because the codes differ
(a throttled write is TooManyRequestsException there and SlowDown here, both 429).
https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_S3_Vectors.html
https://supabase.com/docs/guides/storage/vector/introduction

What does not live here: signing and errors (`s3vectors_client`), the pace of writing and of
retries (`pace`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from mail_assets.vectors.errors import MissingIndexError
from mail_assets.vectors.filters import Filter, nested
from mail_assets.vectors.index import Caps, Floats, IndexSpec, Match, Metadata, Vector, VectorIndex
from mail_assets.vectors.pace import WRITES
from mail_assets.vectors.s3vectors_client import AlreadyExistsError, Client, explained
from mail_assets.vectors.vector import plain

Answer: TypeAlias = dict[str, Any]

SEGMENTS = 4


class S3VectorsBucket:
    """A vector bucket reached through `client`; made by the first `ensure` if it is missing."""

    def __init__(self, client: Client, name: str, where: str) -> None:
        self.client = client
        self.name = name
        self.where = where

    def index(self, spec: IndexSpec) -> S3VectorsIndex:
        """Return the index of `spec`; nothing is sent yet."""
        return S3VectorsIndex(spec, self)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes, none where there is no bucket yet."""
        pages = self.client.get_paginator("list_indexes").paginate(vectorBucketName=self.name)
        with suppress(MissingIndexError), explained(self.where):
            return sorted(index["indexName"] for page in pages for index in page["indexes"])
        return []


class S3VectorsIndex(VectorIndex):
    """One index of a vector bucket."""

    caps = Caps(
        max_batch=500,
        max_bytes=19 << 20,  # the body may have 20 MiB
        max_get=100,
        max_top_k=100,
        max_dimension=4096,
        list_filter=False,
    )

    def __init__(self, spec: IndexSpec, bucket: S3VectorsBucket) -> None:
        super().__init__(spec, bucket.where)
        self._client = bucket.client
        self._bucket = bucket

    def ensure(self) -> None:
        """Create the bucket and the index, or verify what the service says of the index."""
        try:
            existing = self._index()
        except MissingIndexError:
            self._create()
            existing = self._index()
        self._verify(existing)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order, listing segments side by side."""
        # A page of 1,000 keys is one round trip: a page of each segment is fetched at a time, so
        # that an index of any size is listed in little memory.
        segments = [self._pages(segment) for segment in range(SEGMENTS)]
        with ThreadPoolExecutor(SEGMENTS) as pool:
            while segments:
                pages = [*pool.map(lambda pages: next(pages, None), segments)]
                for page in pages:
                    yield from page or ()
                segments = [s for s, page in zip(segments, pages, strict=True) if page is not None]

    def count(self) -> int:
        """Return the number of vectors, by listing them: the services do not count."""
        return sum(1 for _ in self.keys())

    def describe(self) -> dict[str, str | int]:
        """Return what the service says of the index."""
        index = self._index()
        return {
            "backend": "s3vectors",
            "index": self.spec.name,
            "dimension": index["dimension"],
            "metric": index["distanceMetric"],
            "search": str(index.get("indexMode", "service")).lower(),
        }

    def drop(self) -> None:
        """Delete the index, not the bucket; nothing happens where there is none."""
        with suppress(MissingIndexError):
            self._call("delete_index")

    def maintain(self) -> None:
        """Do nothing: the service keeps its index current."""

    def _put(self, batch: Sequence[Vector]) -> None:
        WRITES.take(len(batch))
        self._call("put_vectors", vectors=[_to_wire(vector) for vector in batch])

    def _delete(self, keys: Sequence[str]) -> None:
        WRITES.take(len(keys))
        self._call("delete_vectors", keys=list(keys))

    def _get(self, keys: Sequence[str], data: bool) -> Iterable[Vector]:
        answer = self._call("get_vectors", keys=list(keys), returnData=data, returnMetadata=True)
        return [_from_wire(vector) for vector in answer["vectors"]]

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        where = {} if filter is None else {"filter": nested(filter)}
        answer = self._call(
            "query_vectors",
            topK=top_k,
            queryVector={"float32": vector.tolist()},
            returnDistance=True,
            returnMetadata=metadata,
            **where,
        )
        return [
            Match(found["key"], found["distance"], _metadata(found)) for found in answer["vectors"]
        ]

    def _index(self) -> Answer:
        answer: Answer = self._call("get_index")["index"]
        return answer

    def _create(self) -> None:
        try:
            self._create_index()
        except MissingIndexError:
            with suppress(AlreadyExistsError), explained(self._bucket.where):
                self._client.create_vector_bucket(vectorBucketName=self._bucket.name)
            self._create_index()

    def _create_index(self) -> None:
        settings: Answer = {}
        if self.spec.non_filterable:  # Supabase refuses an empty list
            hidden = list(self.spec.non_filterable)
            settings["metadataConfiguration"] = {"nonFilterableMetadataKeys": hidden}
        with suppress(AlreadyExistsError):  # another process was first; ensure() looks at it
            self._call(
                "create_index",
                dataType="float32",
                dimension=self.spec.dimension,
                distanceMetric="cosine",
                **settings,
            )

    def _verify(self, index: Answer) -> None:
        hidden = index.get("metadataConfiguration", {}).get("nonFilterableMetadataKeys", [])
        exists = (index["dimension"], index["distanceMetric"], sorted(hidden))
        wanted = (self.spec.dimension, "cosine", sorted(self.spec.non_filterable))
        if exists != wanted:
            raise self.mismatch(exists, wanted)

    def _pages(self, segment: int) -> Iterator[list[str]]:
        pages = self._client.get_paginator("list_vectors").paginate(
            vectorBucketName=self._bucket.name,
            indexName=self.spec.name,
            segmentCount=SEGMENTS,
            segmentIndex=segment,
            PaginationConfig={"PageSize": 1000},
        )
        with explained(self.label):
            for page in pages:
                yield [vector["key"] for vector in page["vectors"]]

    def _call(self, operation: str, **arguments: object) -> Answer:
        address = {"vectorBucketName": self._bucket.name, "indexName": self.spec.name}
        with explained(self.label):
            answer: Answer = getattr(self._client, operation)(**address, **arguments)
        return answer


def _to_wire(vector: Vector) -> Answer:
    # The shortest decimals that give the same float32: float32 widened to 17 digits makes a body
    # 1.6 times as long, and the client slower for it.
    values = [float(str(value)) for value in vector.values]
    wire: Answer = {"key": vector.key, "data": {"float32": values}}
    return wire | ({"metadata": vector.metadata} if vector.metadata else {})


def _from_wire(wire: Answer) -> Vector:
    values = np.asarray(wire.get("data", {}).get("float32", []), dtype=np.float32)
    return Vector(wire["key"], values, _metadata(wire))


def _metadata(wire: Answer) -> Metadata:
    return {name: plain(value) for name, value in wire.get("metadata", {}).items()}
