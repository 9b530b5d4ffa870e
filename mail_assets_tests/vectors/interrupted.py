"""A race between a writer and upkeep of LanceDB, made to happen every time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

#: What LanceDB says of a version that upkeep erased after it was read.
ERASED = "Dataset at path _versions/90.manifest was not found: Not found: _versions/90.manifest"


@contextmanager
def fails_once(patch: pytest.MonkeyPatch, kind: type, name: str, says: str) -> Iterator[None]:
    """Let the first call of a method within the block fail, and the next ones do their work."""
    work, left = getattr(kind, name), [says]

    def interrupted(*arguments: object) -> object:
        if left:
            raise RuntimeError(left.pop())
        return work(*arguments)

    with patch.context() as patched:
        patched.setattr(kind, name, interrupted)
        yield
        assert left == []
