"""Errors of vector indexes and buckets; cheap to import where they are only caught."""


class VectorError(RuntimeError):
    """An index or a bucket refuses or fails: names it, the fault and the remedy."""


class MissingIndexError(VectorError):
    """The index does not exist, or its bucket does not."""


def missing_index(label: str) -> MissingIndexError:
    """Return the error for something, named by `label`, that is not there."""
    return MissingIndexError(
        f"{label}: does not exist; `mail-assets backfill` creates it, or correct the URL"
    )
