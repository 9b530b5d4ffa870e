"""LanceDB's errors as those of the index whose table it is."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lance_errors(label: str, kind: type[RuntimeError]) -> Iterator[None]:
    """Turn LanceDB's errors, which are Python's own kinds, into `kind` about `label`."""
    try:
        yield
    except kind:
        raise
    except (RuntimeError, OSError, ValueError) as error:
        raise kind(
            f"{label}: {error}; check the path, its disk space and, on S3, the AWS_ variables; "
            "where the service was down or overloaded, run it again later"
        ) from error
