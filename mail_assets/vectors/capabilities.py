"""What a backend of vector indexes can do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Capabilities:
    """The limits of a backend's requests, and whether it lists keys by filter."""

    max_batch: int  # vectors in one write, keys in one delete
    max_bytes: int  # of one write, as JSON
    max_get: int  # keys in one read
    max_top_k: int
    max_dimension: int
    list_filter: bool
    max_constraints: int = 100  # in a filter, each value of $in is one; of S3 Vectors
