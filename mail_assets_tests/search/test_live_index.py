"""Search uses the live index with its own encoder, and follows a promotion without errors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from mail_assets.encoding.models import compute_fingerprint
from mail_assets.indexes.live import LifecycleError, check_live, promote_vectors, retire_index
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.vectors import index_spec, open_mail_bucket
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.statements import Pending
from mail_assets.search.language.request import Request
from mail_assets.search.live_index import KEPT_VECTORS, LiveIndex, LiveName, follow_live
from mail_assets.settings.settings import load_settings
from mail_assets.tables.indexes import (
    NewIndex,
    ask_live_index,
    make_first_live,
    record_index,
    switch_live,
)
from mail_assets.vectors.index import Match, MissingIndexError, VectorError
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus, index_everything, small_corpus
from mail_assets_tests.search.query_loop import ask_in_loop
from mail_assets_tests.world import PROFILE

QUESTION = Request("una jirafa alta", mode="semantic", limit=1)


@pytest.fixture
def two(cluster: Cluster, tmp_path: Path, model_cache: Path) -> Corpus:
    """A small list in two indexes, int8 and fp32 of one model; the first is live."""
    corpus = small_corpus(tmp_path, new_database(cluster), model_cache)
    for precision in ("int8", "fp32"):
        settings = load_settings(corpus.environ | {"MAIL_PRECISION": precision})
        index_everything(settings)
        spec = index_spec(settings.encoder, precision)
        print_ = compute_fingerprint(settings.encoder, precision)
        with settings.database.connect("test") as connection:
            record = NewIndex(spec.name, settings.encoder, precision, print_)
            record_index(connection, settings.vectors, record)
            make_first_live(connection, settings.vectors, spec.name)
    return corpus


@pytest.mark.slow
def test_queries_follow_a_promotion_without_error(two: Corpus) -> None:
    settings = two.settings
    bucket = MailBucket(open_mail_bucket(settings.database, settings.vectors), settings.vectors)
    int8, fp32 = (index_spec(settings.encoder, precision).name for precision in ("int8", "fp32"))
    scores = []
    with ask_in_loop(two, [QUESTION]) as loop, settings.database.connect("test") as connection:
        for name in (fp32, int8):
            scores.append(loop.go_on(5)[-1].hits[0].score)
            promote_vectors(connection, bucket, name)
        retire_index(connection, bucket, fp32)
        last = loop.go_on(5)[-1]
    assert {hit.message_id for one in loop.answers for hit in one.hits} == {"longest@example.es"}
    # Both indexes have answered, each with its own encoder, so scores differ slightly.
    assert scores[0] != scores[1] == pytest.approx(scores[0], abs=0.05)
    assert last.hits[0].score == scores[0]


class Answering:
    """An index that answers every query with its own name, or fails."""

    def __init__(self, name: str) -> None:
        self.label = name
        self.before: Callable[[], object] = lambda: None
        self.is_empty = False

    def query(
        self, vector: object, top_k: int, where: object, *, metadata: bool, estimate: bool
    ) -> list[Match]:
        self.before()
        if self.is_empty:
            return []
        return [Match(f"{self.label} {vector}", 0.0, {})]


class Speaking:
    """An encoder that returns its precision as vector; `heard` has the texts of all encoders."""

    def __init__(self, precision: str, heard: list[tuple[str, str]]) -> None:
        self.precision = precision
        self.heard = heard

    def encode_query(self, text: str) -> str:
        self.heard.append((self.precision, text))
        return self.precision


class Pair:
    """Two recorded indexes, the int8 one live, and a LiveIndex over them."""

    url = "lance:/nowhere"

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.indexes = {name: Answering(name) for name in ("int8", "fp32")}
        for precision in self.indexes:
            record = NewIndex(self.name(precision), PROFILE, precision, "print")
            record_index(connection, self.url, record)
        make_first_live(connection, self.url, self.name("int8"))

        def ask_live(connection: psycopg.Connection) -> Pending[LiveName]:
            asked = ask_live_index(connection, self.url)
            return asked.then(lambda live: LiveName(*check_live(live, PROFILE, "fp32")))

        self.opened: list[str] = []
        self.heard: list[tuple[str, str]] = []

        def open_index(encoder: str, precision: str) -> Answering:
            self.opened.append(precision)
            return self.indexes[precision]

        self.live = LiveIndex(
            ask_live,
            open_index=open_index,  # type: ignore[arg-type]
            open_encoder=lambda encoder, precision: Speaking(precision, self.heard),  # type: ignore[arg-type, return-value]
        )

    def name(self, precision: str) -> str:
        return index_spec(PROFILE, precision).name

    def switch(self, precision: str) -> None:
        switch_live(self.connection, self.url, self.name(precision), False, {})

    def ask(self, text: str = "text", *, from_mail: bool = False) -> str:
        found = follow_live(
            lambda: self.live.ask(self.connection).read(),
            lambda index: index.name,
            lambda index: index.nearest(text, 1, None, from_mail=from_mail),
            lambda matches: not matches,
        )
        return found[0].key if found else "nothing"


@pytest.fixture
def pair(mail_dsn: str, tmp_path: Path) -> Iterator[Pair]:
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        yield Pair(connection)


def failing(error: Exception) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def test_live_index_is_asked_with_its_own_encoder(pair: Pair) -> None:
    assert pair.ask() == "int8 int8"
    pair.switch("fp32")
    assert pair.ask() == "fp32 fp32"


def test_repeated_query_is_encoded_once(pair: Pair) -> None:
    assert [pair.ask(text) for text in ("one", "two", "one")] == ["int8 int8"] * 3
    pair.switch("fp32")
    assert pair.ask("one") == "fp32 fp32"
    assert pair.heard == [("int8", "one"), ("int8", "two"), ("fp32", "one")]


def test_vector_of_mail_is_not_kept(pair: Pair) -> None:
    for _ in range(2):
        assert pair.ask("a message", from_mail=True) == "int8 int8"
    assert len(pair.heard) == 2


def test_vectors_of_the_last_queries_are_kept(pair: Pair) -> None:
    texts = [f"query {n}" for n in range(KEPT_VECTORS + 1)]
    for text in [*texts, texts[-1], texts[0]]:
        pair.ask(text)
    assert [text for _, text in pair.heard] == [*texts, texts[0]]


def test_index_stays_open_until_another_is_live(pair: Pair) -> None:
    for precision in ("int8", "int8", "fp32", "fp32", "int8"):
        pair.switch(precision)
        pair.ask()
    assert pair.opened == ["int8", "fp32", "int8"]


@pytest.mark.parametrize("error", [VectorError("a file is gone"), MissingIndexError("gone")])
def test_query_is_repeated_if_its_index_goes(pair: Pair, error: Exception) -> None:
    def overtaken() -> None:
        pair.switch("fp32")
        raise error

    pair.indexes["int8"].before = overtaken
    assert pair.ask() == "fp32 fp32"


def test_query_is_repeated_if_its_index_is_emptied(pair: Pair) -> None:
    pair.indexes["int8"].before = lambda: pair.switch("fp32")
    pair.indexes["int8"].is_empty = True
    assert pair.ask() == "fp32 fp32"


def test_empty_live_index_is_asked_once(pair: Pair) -> None:
    asked: list[None] = []
    pair.indexes["int8"].before = lambda: asked.append(None)
    pair.indexes["int8"].is_empty = True
    assert pair.ask() == "nothing"
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (VectorError("the disk is broken"), "the disk is broken"),
        (MissingIndexError("gone"), f"int8: nothing is .* {PROFILE} int8; run `mail-"),
    ],
)
def test_error_of_a_live_index_is_raised(pair: Pair, error: VectorError, said: str) -> None:
    pair.indexes["int8"].before = failing(error)
    with pytest.raises(type(error), match=said):
        pair.ask()


def test_missing_encoder_is_named(pair: Pair) -> None:
    pair.connection.execute("update indexes set encoder = 'gone-small' where precision = 'int8'")
    with pytest.raises(LifecycleError, match=r"gone-small int8 .* does not have"):
        pair.ask()
