"""The index of words on S3-like storage, as in a folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mail_assets.words.index import MissingWordsError, Term, WordQuery
from mail_assets.words.open import open_words
from mail_assets_tests.s3 import serve_bucket
from mail_assets_tests.words.samples import document

LEASE = WordQuery((Term("lease"),))


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    with serve_bucket() as environ:
        yield environ


@pytest.mark.slow
def test_an_index_on_s3_goes_through_its_whole_life(s3: dict[str, str]) -> None:
    index = open_words("lance:s3://mail/words", s3)
    with pytest.raises(MissingWordsError, match="`mail-assets backfill` creates it"):
        index.search(LEASE, 5)
    index.ensure()
    index.put(document(number, ["lease", f"w{number}"]) for number in range(20))
    index.maintain()
    index.put([document(20, ["lease", "lease"]), document(0, ["other"])])
    index.delete([document(1, []).key])
    first, *rest = index.search(LEASE, 50)
    assert (first.message_id, len(rest)) == ("<20@example.org>", 18)
    excluded = WordQuery((Term("lease"),), excluded=("w2", "w3"))
    assert len(index.search(excluded, 50, {"list": {"$eq": "a-list"}})) == 17
    index.maintain(erase=True)
    assert open_words("lance:s3://mail/words", s3).count() == 20
    assert {*index.find({"month": {"$eq": 202001}})} == {document(0, []).key}
    index.drop()
    with pytest.raises(MissingWordsError):
        index.count()
