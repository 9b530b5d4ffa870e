"""Search asks the live index with its own encoder, and follows a promotion without a failure."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from mail_assets.encoding.profiles import fingerprint
from mail_assets.search.request import Request
from mail_assets.search.searcher import Searcher, open_searcher
from mail_assets.settings import Settings, load_settings
from mail_assets.steps.indexes import IndexLifeError, promote, retire
from mail_assets.steps.vectors import index_spec, open_mail_bucket
from mail_assets.store.cluster import Cluster
from mail_assets.store.database import Database
from mail_assets.store.indexes import make_first_live, record_index
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Floats, Match, VectorError
from mail_assets.vectors.lance import LanceIndex
from mail_assets_tests.search.conftest import Corpus, index_everything, new_database, write_tricks

QUESTION = Request("una jirafa alta", mode="semantic", limit=1)


@pytest.fixture
def two(cluster: Cluster, tmp_path: Path) -> Corpus:
    """A small list in two indexes, int8 and fp32 of one model; the first is live."""
    write_tricks(tmp_path / "tricks")
    (tmp_path / "lists.toml").write_text('[harbor-es]\nsource = "tricks"\nlanguage = "spanish"\n')
    corpus = Corpus(
        {
            "MAIL_HOME": str(tmp_path),
            "MAIL_LISTS": str(tmp_path / "lists.toml"),
            "MAIL_PG_DSN": new_database(cluster),
        }
    )
    for precision in ("int8", "fp32"):
        settings = load_settings(corpus.environ | {"MAIL_PRECISION": precision})
        index_everything(settings)
        spec = index_spec(settings.encoder, precision)
        print_ = fingerprint(settings.encoder, precision)
        with connect(settings) as connection:
            made = (settings.vectors, spec.name)
            record_index(connection, *made, settings.encoder, precision, print_)
            make_first_live(connection, *made)
    return corpus


def connect(settings: Settings) -> AbstractContextManager[psycopg.Connection]:
    return Database(settings.home, settings.pg_dsn).connect("test")


def opened(corpus: Corpus, precision: str = "int8") -> AbstractContextManager[Searcher]:
    settings = corpus.settings
    return open_searcher(
        settings.home,
        settings.pg_dsn,
        settings.vectors,
        settings.encoder,
        precision,
        settings.model_cache,
        corpus.languages,
    )


def best(searcher: Searcher) -> tuple[str, float]:
    [hit] = searcher.search(QUESTION).hits
    return hit.message_id, hit.score


class Loop(threading.Thread):
    """Asks the same question again and again, until it is stopped or fails."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__()
        self.corpus = corpus
        self.answers: list[tuple[str, float]] = []
        self.error: BaseException | None = None
        self.stopping = threading.Event()
        self.answered = threading.Condition()

    def run(self) -> None:
        try:
            with opened(self.corpus) as searcher:
                while not self.stopping.is_set():
                    answer = best(searcher)
                    with self.answered:
                        self.answers.append(answer)
                        self.answered.notify_all()
        except BaseException as error:
            self.error = error
            with self.answered:
                self.answered.notify_all()

    def go_on(self, answers: int = 5) -> None:
        """Wait for so many more answers."""
        with self.answered:
            wanted = len(self.answers) + answers
            self.answered.wait_for(lambda: self.error or len(self.answers) >= wanted, timeout=60)


@pytest.fixture
def loop(two: Corpus) -> Iterator[Loop]:
    thread = Loop(two)
    thread.start()
    yield thread
    thread.stopping.set()
    thread.join()


@pytest.mark.slow
def test_a_loop_of_queries_sees_a_promotion_and_back_and_no_error(two: Corpus, loop: Loop) -> None:
    settings = two.settings
    bucket = open_mail_bucket(settings.home, settings.pg_dsn, settings.vectors)
    int8, fp32 = (index_spec(settings.encoder, precision).name for precision in ("int8", "fp32"))
    scores = []
    with connect(settings) as connection:
        for name in (fp32, int8):
            loop.go_on()
            scores.append(loop.answers[-1][1])
            promote(connection, bucket, settings.vectors, name)
        retire(connection, bucket, settings.vectors, fp32)
    loop.go_on()
    assert loop.error is None
    assert {message_id for message_id, _ in loop.answers} == {"longest@example.es"}
    # Both indexes answered, each with its own encoder: their scores differ a little.
    assert scores[0] != scores[1] == pytest.approx(scores[0], abs=0.05)
    assert loop.answers[-1][1] == scores[0]


@pytest.mark.slow
def test_a_query_whose_index_goes_while_it_is_read_is_asked_of_the_live_one(
    two: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, query = two.settings, LanceIndex.query
    bucket = open_mail_bucket(settings.home, settings.pg_dsn, settings.vectors)
    int8, fp32 = (index_spec(settings.encoder, precision).name for precision in ("int8", "fp32"))

    def overtaken(
        index: LanceIndex, vector: Floats, top_k: int, where: Filter | None = None
    ) -> list[Match]:
        if index.spec.name == int8:
            with connect(settings) as connection:
                promote(connection, bucket, settings.vectors, fp32)
            raise VectorError("a file of the index is gone")
        return query(index, vector, top_k, where)

    monkeypatch.setattr(LanceIndex, "query", overtaken)
    with opened(two) as searcher:
        assert best(searcher)[0] == "longest@example.es"


@pytest.mark.slow
def test_the_live_index_is_asked_whatever_encoder_is_in_force(two: Corpus) -> None:
    with opened(two, "int8") as one, opened(two, "fp32") as other:
        assert best(one) == best(other)


def live_encoder_gone(corpus: Corpus) -> None:
    with connect(corpus.settings) as connection:
        connection.execute("update indexes set encoder = 'gone-small' where precision = 'int8'")


def retired_behind_a_query(corpus: Corpus) -> None:
    """Drop the live index from the bucket: nothing else is live, so there is nothing to ask."""
    settings = corpus.settings
    bucket = open_mail_bucket(settings.home, settings.pg_dsn, settings.vectors)
    bucket.index(index_spec(settings.encoder, "int8")).drop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (live_encoder_gone, "gone-small int8 .* does not have"),
        (retired_behind_a_query, "nothing is indexed yet with encoder all-minilm-l6-v2 int8"),
    ],
)
def test_an_index_that_cannot_be_asked_is_an_error_and_full_text_answers(
    two: Corpus, spoil: Callable[[Corpus], None], said: str
) -> None:
    spoil(two)
    with opened(two) as searcher:
        with pytest.raises(RuntimeError, match=said) as caught:
            best(searcher)
        assert type(caught.value).__name__ in (IndexLifeError.__name__, "MissingIndexError")
        assert searcher.search(Request("jirafa", mode="fulltext")).hits
