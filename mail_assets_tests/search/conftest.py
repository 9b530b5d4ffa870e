"""Fixtures of the tests of search: a connection to the database of the corpus."""

from collections.abc import Iterator

import psycopg
import pytest

from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.words.index import WordIndex
from mail_assets.words.open import open_words
from mail_assets_tests.sample_corpus import Corpus


@pytest.fixture(scope="session")
def connection(corpus: Corpus) -> Iterator[psycopg.Connection]:
    """A connection for the tests, to read rows."""
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        show_lists(connection, EVERY_LIST)
        yield connection


@pytest.fixture(scope="session")
def words(corpus: Corpus) -> WordIndex:
    return open_words(corpus.settings.words)
