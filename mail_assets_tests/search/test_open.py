"""A searcher over an empty database."""

from dataclasses import replace

import pytest

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database
from mail_assets.search.open import open_searcher
from mail_assets.search.request import Request
from mail_assets.vectors.index import MissingIndexError
from mail_assets_tests.conftest import new_database
from mail_assets_tests.sample_corpus import Corpus


def test_an_empty_database_answers_by_words_and_says_what_is_missing_for_meaning(
    cluster: Cluster, corpus: Corpus
) -> None:
    home = corpus.settings.home
    empty = replace(
        corpus.search_settings,
        database=Database(home, new_database(cluster)),
        vectors=f"lance:{home / 'no-vectors'}",
    )
    with open_searcher(empty) as searcher:
        assert searcher.search(Request("jobs", mode="fulltext")).hits == ()
        for mode in ("semantic", "hybrid"):
            with pytest.raises(MissingIndexError, match="run `mail-assets backfill`"):
                searcher.search(Request("jobs", mode=mode))
