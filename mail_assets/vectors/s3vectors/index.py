"""One vector index at AWS S3 Vectors or at Supabase.

The code keeps to what both serve: top_k up to 100 in one page, no $startsWith, no full text, no
index modes, no ARNs.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_S3_Vectors.html
https://supabase.com/docs/guides/storage/vector/introduction
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from mail_assets.vectors.capabilities import Capabilities
from mail_assets.vectors.errors import MissingIndexError
from mail_assets.vectors.filters import Filter, nest_conditions
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.s3vectors.client import AlreadyExistsError, BotoClient, boto_errors
from mail_assets.vectors.s3vectors.wire import (
    StoredIndex,
    WireObject,
    index_from_wire,
    match_from_wire,
    vector_from_wire,
    vector_to_wire,
)
from mail_assets.vectors.s3vectors.write_rate import WRITES
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Floats, Match, Vector

#: Parts of the key space that are listed side by side.
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
        """Create the bucket and the index, or verify what the service says of the index."""
        try:
            existing = self._index()
        except MissingIndexError:
            before()
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
            "dimension": index.dimension,
            "metric": index.metric,
            "search": index.mode,
        }

    def drop(self) -> None:
        """Delete the index, not the bucket; nothing happens where there is none."""
        with suppress(MissingIndexError):
            self._call("delete_index")

    def maintain(self, *, erase: bool = False) -> None:
        """Do nothing: the service keeps its index current, and deletes at once."""

    def _put(self, batch: Sequence[Vector]) -> None:
        WRITES.take(len(batch))
        self._call("put_vectors", vectors=[vector_to_wire(vector) for vector in batch])

    def _delete(self, keys: Sequence[str], among: Filter | None) -> None:
        WRITES.take(len(keys))
        self._call("delete_vectors", keys=list(keys))

    def _get(self, keys: Sequence[str], data: bool) -> Iterable[Vector]:
        answer = self._call("get_vectors", keys=list(keys), returnData=data, returnMetadata=True)
        with boto_errors(self.label):
            return [vector_from_wire(vector) for vector in answer["vectors"]]

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
        with boto_errors(self.label):
            return [match_from_wire(found) for found in answer["vectors"]]

    def _index(self) -> StoredIndex:
        answer = self._call("get_index")
        with boto_errors(self.label):
            return index_from_wire(answer["index"])

    def _create(self) -> None:
        try:
            self._create_index()
        except MissingIndexError:
            with suppress(AlreadyExistsError), boto_errors(self._where):
                self._client.create_vector_bucket(vectorBucketName=self._bucket_name)
            self._create_index()

    def _create_index(self) -> None:
        settings: WireObject = {}
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
        with boto_errors(self.label):
            for page in pages:
                yield [vector["key"] for vector in page["vectors"]]

    def _call(self, operation: str, **arguments: object) -> WireObject:
        address = {"vectorBucketName": self._bucket_name, "indexName": self.spec.name}
        with boto_errors(self.label):
            answer: WireObject = getattr(self._client, operation)(**address, **arguments)
        return answer
