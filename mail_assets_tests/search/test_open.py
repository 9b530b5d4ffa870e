"""A searcher over an empty database."""

from dataclasses import replace

import numpy as np
import pytest

from mail_assets.encoding.models import compute_fingerprint
from mail_assets.indexes.encoder_probe import EncoderProbeError
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.tables.encoded_texts import EncoderProbe, record_probe
from mail_assets.vectors.index import MissingIndexError
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus


def test_empty_database_answers_by_words_only(cluster: Cluster, corpus: Corpus) -> None:
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


def test_vectors_of_another_machine_are_refused(cluster: Cluster, corpus: Corpus) -> None:
    home = corpus.settings.home
    settings = replace(corpus.search_settings, database=Database(home, new_database(cluster)))
    fingerprint = compute_fingerprint(settings.encoder, settings.precision)
    other = np.eye(1, 384, dtype=np.float32)[0]
    with settings.database.connect("test") as connection:
        record_probe(connection, fingerprint, EncoderProbe(other, "another processor"))
    with open_searcher(settings) as searcher:
        assert searcher.search(Request("jobs", mode="fulltext"))
        for mode in ("semantic", "hybrid"):
            with pytest.raises(EncoderProbeError, match=r"begun \(another processor\): cosine"):
                searcher.search(Request("jobs", mode=mode))
