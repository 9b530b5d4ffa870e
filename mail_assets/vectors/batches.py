"""Cut what is written or read into requests that a backend takes."""

from collections.abc import Iterable, Iterator, Sequence

from mail_assets.vectors.vector import Vector, json_bound


def batch_vectors(
    vectors: Iterable[Vector], max_count: int, max_bytes: int
) -> Iterator[list[Vector]]:
    """Yield batches of so many vectors and bytes of JSON at most, no key twice in one.

    The last vector under a key stays (Supabase answers 400 to a key that comes twice).
    """
    batch: dict[str, Vector] = {}
    size = 0
    for vector in vectors:
        extra = json_bound(vector)
        if batch and (len(batch) == max_count or size + extra > max_bytes):
            yield list(batch.values())
            batch, size = {}, 0
        batch[vector.key] = vector
        size += extra
    if batch:
        yield list(batch.values())


def split(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Cut `items` into pieces of `size` at most."""
    return (items[start : start + size] for start in range(0, len(items), size))
