"""An index of words in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mail_assets.words.index import WordIndex
from mail_assets.words.open import open_words


@pytest.fixture
def words_url(tmp_path: Path) -> str:
    return f"lance:{tmp_path / 'words'}"


@pytest.fixture
def words(words_url: str) -> WordIndex:
    index = open_words(words_url, {})
    index.ensure()
    return index
