"""Chunk sizes that can work, and sizes that cannot."""

import pytest

from mail_assets.text.chunking import ChunkSizes

SIZES = ChunkSizes(target=160, max_tokens=200, min_tokens=20, overlap=30)


def test_a_header_takes_its_tokens_from_the_text() -> None:
    SIZES.check()
    assert SIZES.with_header(10) == SIZES._replace(max_tokens=190)
    assert SIZES.with_header(60) == SIZES._replace(target=140, max_tokens=140)


@pytest.mark.parametrize(
    "change",
    [{"max_tokens": 100}, {"overlap": 160}, {"target": 201}, {"max_chars": 0}, {"max_chunks": 0}],
)
def test_sizes_that_cannot_work_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"max_tokens is 100|sizes must obey"):
        SIZES._replace(**change).check()
