"""Fixtures of the tests of search: a connection to the database of the corpus."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.sql_functions import install_functions
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.words.index import WordIndex
from mail_assets.words.open import open_words
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus, corpus_of


@pytest.fixture(scope="session")
def connection(corpus: Corpus) -> Iterator[psycopg.Connection]:
    """A connection for the tests, to read rows."""
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        show_lists(connection, EVERY_LIST)
        yield connection


@pytest.fixture(scope="session")
def words(corpus: Corpus) -> WordIndex:
    return open_words(corpus.settings.words)


@pytest.fixture(scope="module")
def text_corpus(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    model_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Corpus:
    """The `TEXTS` of the module, one message for each."""
    home = tmp_path_factory.mktemp("texts")
    return corpus_of(request.module.TEXTS, home, new_database(cluster), model_cache)


@pytest.fixture(scope="module")
def text_searcher(text_corpus: Corpus) -> Iterator[Searcher]:
    with open_searcher(text_corpus.search_settings) as searcher:
        yield searcher


@pytest.fixture(scope="module")
def text_db(text_corpus: Corpus) -> Iterator[psycopg.Connection]:
    """A connection to the database of the texts, with functions of search."""
    with psycopg.connect(text_corpus.settings.pg_dsn, autocommit=True) as connection:
        install_functions(connection, text_corpus.settings.languages, vectors=False)
        yield connection
