"""Opens a searcher: the mail database, the word index, the live vector index and its encoder.

Slow parts are opened once per process and shared by its searchers: LanceDB takes a second to
import, a model half a second to load. Each searcher has its own connection.
"""

import contextlib
import functools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from mail_assets.encoding.models import REMOTE_SCHEME
from mail_assets.encoding.open import open_encoder
from mail_assets.indexes.encoder_probe import check_encoder
from mail_assets.indexes.live import ask_live_words, check_live
from mail_assets.indexes.vectors import index_spec, open_mail_bucket
from mail_assets.postgres.database import Database
from mail_assets.postgres.statements import Pending
from mail_assets.search.live_index import LiveIndex, LiveName
from mail_assets.search.searcher import Searcher
from mail_assets.tables.indexes import IndexRecord, ask_live_index
from mail_assets.vectors.index import Bucket, VectorIndex
from mail_assets.words.index import WordIndex
from mail_assets.words.open import open_words

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a searcher.

    - `vectors`: URL of the vector bucket.
    - `words`: URL of the word index.
    - `encoder`, `precision`: the configured index, which is searched while no index is live.
    - `models`: folder of prepared models.
    - `languages`: the lists to search, each with its text search configuration.
    """

    database: Database
    vectors: str
    words: str
    encoder: str
    precision: str
    models: Path
    languages: Mapping[str, str]


@contextlib.contextmanager
def open_searcher(
    settings: SearchSettings,
    *,
    index: IndexRecord | None = None,
    bucket: str = "",
    statement_seconds: int = 0,
) -> Iterator[Searcher]:
    """Yield a searcher over the live index, or the configured one while none is live.

    With `index` it searches that index, live or not; `bucket` is the URL of its bucket if it is not
    the one of the settings. `statement_seconds` limits each statement; 0 means no limit.
    """
    vectors = bucket or settings.vectors
    with contextlib.ExitStack() as stack:

        def connect() -> psycopg.Connection:
            connection = stack.enter_context(settings.database.connect("search"))
            prepare_connection(connection, statement_seconds)
            return connection

        def ask_live(connection: psycopg.Connection) -> Pending[LiveName]:
            if index is not None:
                return Pending.known(LiveName(index.encoder, index.precision))
            return ask_live_index(connection, vectors).then(
                lambda live: LiveName(*check_live(live, settings.encoder, settings.precision))
            )

        def ask_words(connection: psycopg.Connection) -> Pending[WordIndex]:
            return ask_live_words(connection, settings.words).then(
                functools.partial(_open_words_once, settings.words)
            )

        live = LiveIndex(
            ask_live,
            lambda *name: _open_bucket(settings.database, vectors).index(index_spec(*name)),
            functools.partial(_open_checked_encoder, settings.database, settings.models),
        )
        yield Searcher(connect(), ask_words, live.ask, settings.languages, connect)


def prepare_connection(connection: psycopg.Connection, statement_seconds: int = 0) -> None:
    """Set up a connection for searches: custom plans, no JIT, no sequential scans, a timeout.

    A generic plan reads all messages for some values (a rare word, a list without mail). JIT
    compilation takes longer than any search. Sequential scans are off because the planner misjudges
    how many rows a pattern matches.

    Statements are prepared when they are first sent; psycopg would wait for the sixth time, and
    planning takes as long as the rest of a search. Searches have 60 statements, whose plans take 14
    MB per session.
    """
    connection.execute(
        "set plan_cache_mode = force_custom_plan; set jit = off; set enable_seqscan = off"
    )
    connection.prepare_threshold = 0
    if statement_seconds:
        timeout = (f"{statement_seconds}s",)
        connection.execute("select set_config('statement_timeout', %s, false)", timeout)


def open_index(database: Database, vectors: str, encoder: str, precision: str) -> VectorIndex:
    """Return the index of an encoder in the bucket with the URL `vectors`; it may not exist yet."""
    return open_mail_bucket(database, vectors).index(index_spec(encoder, precision))


@functools.cache
def _open_bucket(database: Database, vectors: str) -> Bucket:
    return open_mail_bucket(database, vectors)


@functools.cache
def _open_words_once(url: str, name: str) -> WordIndex:
    return open_words(url, name=name)


@functools.cache
def _open_checked_encoder(database: Database, models: Path, name: str, precision: str) -> "Encoder":
    """Open an encoder, and check that a local one computes the same vectors as its index has."""
    encoder = _open_encoder_once(name, precision, models)
    if not name.startswith(REMOTE_SCHEME):
        with database.connect("search") as connection:
            check_encoder(connection, encoder, logger.warning)
    return encoder


@functools.cache
def _open_encoder_once(name: str, precision: str, models: Path) -> "Encoder":
    return open_encoder(name, precision, models)
