"""Storage and operations of the fake S3 Vectors API."""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message

import numpy as np
import numpy.typing as npt

from mail_assets.vectors.filters import matches_filter
from mail_assets_tests.vectors.fake_rules import (
    ERRORS,
    INDEX_NAME_LENGTH,
    INDEXES,
    MAX_BODY,
    MAX_CONSTRAINTS,
    TOP_K,
    Flavour,
    Json,
    RefusedError,
    count_constraints,
    filtered_names,
    is_primitive,
    json_bytes,
    paged,
    require,
    view,
)


@dataclass
class Stored:
    dimension: int
    hidden: list[str]
    vectors: dict[str, tuple[npt.NDArray[np.float32], Json]] = field(default_factory=dict)


class FakeService:
    """The buckets of a service, without its faults and its connections."""

    def __init__(self, flavour: Flavour, token: str = "") -> None:
        self.flavour = flavour
        self.token = token
        self.prefix = "" if flavour == "aws" else "/storage/v1/vector"
        self._lock = threading.Lock()
        self._operations: dict[str, Callable[[Json], Json]] = {
            "CreateVectorBucket": self._create_bucket,
            "CreateIndex": self._create_index,
            "GetIndex": self._get_index,
            "ListIndexes": self._list_indexes,
            "DeleteIndex": self._delete_index,
            "PutVectors": self._put,
            "GetVectors": self._get,
            "ListVectors": self._list,
            "DeleteVectors": self._delete,
            "QueryVectors": self._query,
        }
        self.reset()

    def reset(self) -> None:
        self.buckets: dict[str, dict[str, Stored]] = {}
        self.under_return = 1.0
        self.max_indexes = INDEXES[self.flavour]

    # Buckets and indexes

    def _bucket(self, q: Json) -> dict[str, Stored]:
        name = q["vectorBucketName"]
        require(name in self.buckets, "missing", f"vector bucket {name} could not be found")
        return self.buckets[name]

    def _index(self, q: Json) -> Stored:
        bucket, name = self._bucket(q), q["indexName"]
        require(name in bucket, "missing", f"index {name} could not be found")
        return bucket[name]

    def _with_arn(self, answer: Json, kind: str, q: Json) -> Json:
        if self.flavour == "supabase":  # it knows no ARNs
            return answer
        path = "/index/".join(q[name] for name in ("vectorBucketName", "indexName") if name in q)
        arn = f"arn:aws:s3vectors:us-east-1:000000000000:bucket/{path}"
        return {**answer, f"{kind}Arn": arn}

    def _create_bucket(self, q: Json) -> Json:
        name = q["vectorBucketName"]
        require(name not in self.buckets, "exists", f"vector bucket {name} already exists")
        self.buckets[name] = {}
        return self._with_arn({}, "vectorBucket", q)

    def _create_index(self, q: Json) -> Json:
        bucket, name = self._bucket(q), q["indexName"]
        require(
            re.fullmatch(r"[a-z0-9][a-z0-9.-]+[a-z0-9]", name)
            and len(name) <= INDEX_NAME_LENGTH[self.flavour],
            "shape",
            "Invalid index name",
        )
        require(q["dataType"] == "float32", "shape", "Invalid type")
        require(q["distanceMetric"] == "cosine", "shape", "only cosine is served here")
        require(1 <= q["dimension"] <= 4096, "shape", "Invalid dimension")
        settings = q.get("metadataConfiguration")
        hidden = [] if settings is None else settings["nonFilterableMetadataKeys"]
        empty = settings is not None and not hidden and self.flavour == "supabase"
        require(not empty, "shape", "nonFilterableMetadataKeys must have at least 1 item")
        require(len(hidden) <= 10, "shape", "Too many non-filterable metadata keys")
        require(name not in bucket, "exists", f"index {name} already exists")
        require(len(bucket) < self.max_indexes, "quota", "Maximum number of indexes exceeded")
        bucket[name] = Stored(q["dimension"], hidden)
        return self._with_arn({}, "index", q)

    def _get_index(self, q: Json) -> Json:
        index = self._index(q)
        view = {
            "vectorBucketName": q["vectorBucketName"],
            "indexName": q["indexName"],
            "creationTime": 1_750_000_000,
            "dataType": "float32",
            "dimension": index.dimension,
            "distanceMetric": "cosine",
        }
        if index.hidden:
            view["metadataConfiguration"] = {"nonFilterableMetadataKeys": index.hidden}
        return {"index": self._with_arn(view, "index", q)}

    def _list_indexes(self, q: Json) -> Json:
        bucket = q["vectorBucketName"]
        page, token = paged(sorted(self._bucket(q)), q, 500)
        views = [
            {"vectorBucketName": bucket, "indexName": name, "creationTime": 1_750_000_000}
            for name in page
        ]
        return {"indexes": [self._with_arn(view, "index", view) for view in views], **token}

    def _delete_index(self, q: Json) -> Json:
        self._index(q)
        del self._bucket(q)[q["indexName"]]
        return {}

    # Vectors

    def _put(self, q: Json) -> Json:
        index, vectors = self._index(q), q["vectors"]
        require(1 <= len(vectors) <= 500, "shape", "vectors must have 1 to 500 items")
        keys = {vector["key"] for vector in vectors}
        require(len(keys) == len(vectors), "value", "Request must not contain duplicate keys")
        checked = {vector["key"]: self._checked(index, vector) for vector in vectors}
        index.vectors.update(checked)  # all or nothing
        return {}

    def _checked(self, index: Stored, vector: Json) -> tuple[npt.NDArray[np.float32], Json]:
        bad = f"Invalid record for key {vector['key']!r}: "
        require(1 <= len(vector["key"]) <= 1024, "shape", bad + "key length")
        values = np.asarray(vector["data"]["float32"], np.float32)
        metadata = vector.get("metadata", {})
        require(values.shape == (index.dimension,), "dimension", bad + f"length {values.size}")
        require(np.isfinite(values).all(), "value", bad + "NaN or Inf")
        require(values.any() or self.flavour == "supabase", "value", bad + "zero vector")
        require(len(metadata) <= 50, "value", bad + "more than 50 metadata keys")
        for value in metadata.values():
            items = value if isinstance(value, list) else [value]
            require(all(map(is_primitive, items)), "shape", bad + "unsupported metadata type")
        filterable = {k: v for k, v in metadata.items() if k not in index.hidden}
        require(json_bytes(filterable) <= 2048, "value", bad + "more than 2048 filterable bytes")
        require(json_bytes(metadata) <= 40960, "value", bad + "more than 40960 metadata bytes")
        return values, metadata

    def _get(self, q: Json) -> Json:
        index, keys = self._index(q), q["keys"]
        require(1 <= len(keys) <= 100, "shape", "keys must have 1 to 100 items")
        found = sorted({key for key in keys if key in index.vectors}, reverse=True)  # any order
        return {"vectors": [view(key, *index.vectors[key], q) for key in found]}

    def _delete(self, q: Json) -> Json:
        index, keys = self._index(q), q["keys"]
        require(1 <= len(keys) <= 500, "shape", "keys must have 1 to 500 items")
        for key in keys:
            index.vectors.pop(key, None)
        return {}

    def _list(self, q: Json) -> Json:
        index, count, segment = self._index(q), q.get("segmentCount", 1), q.get("segmentIndex", 0)
        together = ("segmentCount" in q) == ("segmentIndex" in q)
        require(together, "value", "segmentCount and segmentIndex go together")
        require(1 <= count <= 16 and 0 <= segment < count, "shape", "Invalid segment")
        hashed = ((zlib.crc32(key.encode()), key) for key in index.vectors)  # not in key order
        keys = [key for crc, key in sorted(hashed) if crc % count == segment]
        page, token = paged(keys, q, 1000)
        return {"vectors": [view(key, *index.vectors[key], q) for key in page], **token}

    def _query(self, q: Json) -> Json:
        index, top_k, where = self._index(q), q["topK"], q.get("filter")
        known = {"vectorBucketName", "indexName", "topK", "queryVector", "filter"}
        extra = q.keys() - known - {"returnDistance", "returnMetadata"}
        require(not extra, "shape", f"unexpected fields {sorted(extra)}")
        require(1 <= top_k <= TOP_K[self.flavour], "shape", "Invalid topK")
        if where is not None:
            hidden = filtered_names(where, self.flavour) & set(index.hidden)
            require(not hidden, "value", f"Invalid use of non-filterable metadata {hidden}")
            few = self.flavour != "aws" or count_constraints(where) <= MAX_CONSTRAINTS
            require(few, "value", "Filter has too many constraints")
        values = np.asarray(q["queryVector"]["float32"], np.float32)
        fits = values.shape == (index.dimension,) and bool(np.isfinite(values).all())
        require(fits, "dimension", "Query vector is invalid for this index")
        hits = [
            (self._distance(stored, values), key)
            for key, (stored, metadata) in index.vectors.items()
            if where is None or matches_filter(where, metadata)
        ]
        nearest = sorted(hits, key=lambda hit: hit[0])[:top_k]
        if where is not None:
            nearest = nearest[: int(len(nearest) * self.under_return)]
        found = [
            {**view(key, *index.vectors[key], q), "distance": distance} for distance, key in nearest
        ]
        return {"vectors": found[:100], "distanceMetric": "cosine"}

    def _distance(self, a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
        # On AWS a vector is about 5e-06 from itself.
        noise = 5e-6 if self.flavour == "aws" else 0.0
        return 1 - float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) + noise

    # The wire

    def answer(self, path: str, headers: Message, body: bytes) -> tuple[int, Json, str]:
        """Return the status, the body, and the error code or ''."""
        operation = path.removeprefix(f"{self.prefix}/")
        try:
            with self._lock:
                authorization = headers.get("authorization", "")
                require(authorization, "auth", "Missing signature")
                expected = f"Bearer {self.token}"
                require(not self.token or authorization == expected, "auth", "Access denied")
                require(operation in self._operations, "missing", f"no operation {path}")
                require(len(body) <= MAX_BODY, "shape", "Request body is too large")
                return 200, self._operations[operation](json.loads(body)), ""
        except RefusedError as error:
            status, code = ERRORS[error.reason][self.flavour]
            return status, {"message": str(error)}, code
        except (KeyError, TypeError, ValueError) as error:
            status, code = ERRORS["shape"][self.flavour]
            return status, {"message": f"malformed request: {error!r}"}, code
