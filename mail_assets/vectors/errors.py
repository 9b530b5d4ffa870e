"""What an index or bucket raises; cheap to import for whoever only catches it.

What does not live here: `FilterError` (`filters`).
"""


class VectorError(RuntimeError):
    """An index or bucket refused or failed: names which, what happened and the remedy."""


class MissingIndexError(VectorError):
    """The index does not exist, or its bucket does not."""


def missing(label: str) -> MissingIndexError:
    """Return the error for something, named by `label`, that is not there."""
    return MissingIndexError(
        f"{label}: does not exist; create it with ensure(), or correct the URL of the bucket"
    )
