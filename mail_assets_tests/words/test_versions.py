"""An index that another version of this package filled, with other columns."""

from __future__ import annotations

from pathlib import Path

import lancedb
import pytest

from mail_assets.words.index import NAME, MissingWordsError, Term, WordIndex, WordQuery, WordsError
from mail_assets.words.lance import to_arrow
from mail_assets.words.open import open_words
from mail_assets_tests.words.samples import document

DOCUMENTS = [document(number, ["lease", f"w{number}"]) for number in range(3)]
LEASE = WordQuery((Term("lease"),))


def former(folder: Path, without: list[str]) -> WordIndex:
    """Return the index of a version that kept less."""
    rows = to_arrow(DOCUMENTS).drop_columns(without)
    lancedb.connect(folder / "words").create_table("words-1", rows)
    return open_words(f"lance:{folder / 'words'}", {}, name="words-1")


def test_a_missing_column_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    index = former(tmp_path, ["message_id", "match"])
    wanted = (
        "words-1 in lance:.*: another version of mail_assets filled it, without message_id, match; "
        f"run `mail-assets backfill`, which fills {NAME} and makes it live"
    )
    for where in (None, {"message_id": {"$in": ["<1@example.org>"]}}):
        with pytest.raises(WordsError, match=wanted) as caught:
            index.search(LEASE, 5, where)
        assert not isinstance(caught.value, MissingWordsError)


def test_a_table_with_every_column_is_searched(tmp_path: Path) -> None:
    assert len(former(tmp_path, []).search(LEASE, 5)) == 3


@pytest.mark.parametrize("without", [[], ["message_id"], ["prefixes", "flags"]], ids=len)
def test_forgetting_and_upkeep_need_no_new_column(tmp_path: Path, without: list[str]) -> None:
    index = former(tmp_path, without)
    index.maintain()
    index.delete([DOCUMENTS[1].key])
    index.maintain(erase=True)
    assert sorted(index.keys()) == [DOCUMENTS[0].key, DOCUMENTS[2].key]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"w1" in path.read_bytes()] == []
