"""A content coding is undone in bounded pieces, however it arrives."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.sources import http_reader
from mail_assets.sources.source import SourceError


@given(
    members=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    size=st.integers(1, 64),
    limit=st.integers(1, 64),
)
@settings(max_examples=100)
def test_a_coding_is_undone_however_it_is_cut_into_pieces(
    members: list[bytes], size: int, limit: int
) -> None:
    coded = b"".join(map(gzip.compress, members))
    pieces = [coded[at : at + size] for at in range(0, len(coded), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_reader, "CHUNK", limit)
        out = list(http_reader._gunzip(pieces))
        with pytest.raises(SourceError, match="ends inside"):
            list(http_reader._gunzip([coded[:-1]]))
    assert b"".join(out) == b"".join(members)
    assert all(len(piece) <= limit for piece in out)
