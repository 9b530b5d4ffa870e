"""Search follows the word index through promotion, retirement, forgetting and upkeep."""

from pathlib import Path

import pytest

from mail_assets.forgetting.forget import ForgetRequest, forget_messages
from mail_assets.indexes.live import find_live_words, follow_version, retire_index
from mail_assets.indexes.vectors import open_known_index
from mail_assets.indexes.words import open_mail_words, open_words_bucket
from mail_assets.month import ListMonth
from mail_assets.postgres.embedded import Cluster
from mail_assets.search.language.request import Request
from mail_assets.settings.settings import load_settings
from mail_assets.steps.fill_index import write_words
from mail_assets.store.open import open_store
from mail_assets.words.index import NAME
from mail_assets.workspace import Workspace
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus, ids, index_everything, small_corpus
from mail_assets_tests.search.query_loop import QueryLoop, ask_in_loop
from mail_assets_tests.world import FORGET_KEY

OTHER = "words-99"
GONE, STAYS = "longest@example.es", "long@example.es"
#: Of both messages: ranked, by a phrase, by a prefix and the newest first.
REQUESTS = [
    Request(query, mode="fulltext", limit=50, group="message")
    for query in ("jirafa marea", '"jirafa alta" or "marea alta"', "alta* sort:date")
]


@pytest.fixture
def small(cluster: Cluster, tmp_path: Path, model_cache: Path) -> Corpus:
    """A small list, with its word index."""
    corpus = small_corpus(tmp_path, new_database(cluster), model_cache)
    corpus.environ["MAIL_FORGET_KEY"] = FORGET_KEY
    index_everything(load_settings(corpus.environ))
    return corpus


def go_on(loop: QueryLoop) -> list[set[str]]:
    """Return the ids that each request finds from now on, twice."""
    return [{*ids(one)} for one in loop.go_on(2 * len(REQUESTS))]


def test_queries_follow_word_indexes_without_error(small: Corpus) -> None:
    settings = small.settings
    other = open_mail_words(settings.words, OTHER)
    with ask_in_loop(small, REQUESTS) as loop, settings.database.connect("test") as connection:
        assert all({GONE, STAYS} <= found for found in go_on(loop))
        store, key = open_store(settings.store), settings.forget_key
        workspace = Workspace(connection, store, lambda line: None, key)
        for month in ("2024-03", "2024-04"):
            write_words(workspace, ListMonth("harbor-es", month), other)
        assert follow_version(connection, other)
        go_on(loop)
        retire_index(connection, open_words_bucket(settings.words), NAME)
        assert find_live_words(connection, settings.words) == OTHER
        assert all({GONE, STAYS} <= found for found in go_on(loop))
        forget_messages(
            workspace,
            ForgetRequest([GONE], [], "asked to", "the postmaster"),
            lambda name: open_known_index(settings.database, name),
        )
        after = go_on(loop)
        assert [found for found in after if GONE in found or STAYS not in found] == []
        for erase in (False, True):
            other.index.maintain(erase=erase)
        assert all(STAYS in found and GONE not in found for found in go_on(loop))
