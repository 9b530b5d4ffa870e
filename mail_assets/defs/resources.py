"""The resources: typed access to the database, store, sources, models, indexes and search.

build_resources (definitions.py) configures them from the settings. Secrets are read from the
environment at run time.
https://docs.dagster.io/guides/build/external-resources
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import numpy as np
import numpy.typing as npt
import psycopg
from pydantic import Field, PrivateAttr
from tokenizers import Tokenizer

from mail_assets.defs.failures import fail_step
from mail_assets.encoding.models import LocalModel, RemoteModel, compute_fingerprint, resolve_model
from mail_assets.encoding.open import open_encoder, open_tokenizer
from mail_assets.encoding.remote_encoder import RemoteEncoder
from mail_assets.errors import MailAssetsError
from mail_assets.files import find_full_disk
from mail_assets.http.requests import post_message
from mail_assets.indexes.live import live_encoder
from mail_assets.indexes.vectors import (
    MailVectors,
    check_mail_bucket,
    open_mail_bucket,
    open_mail_vectors,
)
from mail_assets.indexes.words import MailWords, open_mail_words
from mail_assets.openai import ChatModel, Client, Server
from mail_assets.postgres.database import Database
from mail_assets.postgres.programs import PostgresError
from mail_assets.processes.workers import WorkerPool
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.sources.open import open_source
from mail_assets.sources.repository import CommitSource
from mail_assets.sources.source import ArchiveSource, HttpOptions
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store, store_folder
from mail_assets.summaries.chat import ChatMaker, chat_fingerprint
from mail_assets.summaries.extractive import ExtractiveMaker
from mail_assets.summaries.summary import Maker
from mail_assets.tables.commits import Discussed
from mail_assets.tables.indexes import IndexRecord
from mail_assets.tables.removals import KeySource, find_key
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.vectors.index import Bucket
from mail_assets.workspace import Workspace

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


class DatabaseResource(dg.ConfigurableResource):
    """The mail database: the user's server, or the embedded server, which starts on demand."""

    home: str = Field(description="MAIL_HOME: has the embedded server, used if dsn is empty")
    dsn: str = Field(default="", description="MAIL_PG_DSN; empty for the embedded server")
    forget_key: str = Field(
        default="", description="MAIL_FORGET_KEY; empty if the key is in a file of home"
    )

    @property
    def database(self) -> Database:
        """The mail database, not connected."""
        return Database(Path(self.home), self.dsn)

    @property
    def key_source(self) -> KeySource:
        """Source of the key for the digests of forgotten mail."""
        return find_key(Path(self.home), self.dsn, self.forget_key)

    @contextmanager
    def connect(self, role: str, run: str = "") -> Iterator[psycopg.Connection]:
        """Open a connection that pg_stat_activity shows with the role and the run.

        Raises:
            StepFailedError: the server does not answer, or is not suitable.
        """
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self.database.connect(role, run[:8]))
            except (psycopg.OperationalError, PostgresError) as error:
                place = "MAIL_PG_DSN" if self.dsn else "the embedded server"
                raise fail_step(error, f"{place}: {' '.join(str(error).split())}") from error
            yield connection


class StoreResource(dg.ConfigurableResource):
    """The store of archives as fetched, and of embeddings as Parquet files."""

    url: str = Field(description="MAIL_STORE: a folder, or s3://bucket/prefix")

    def open(self) -> ObjectStore:
        """Open the store."""
        return open_store(self.url)


class WorkspaceResource(dg.ConfigurableResource):
    """The database and the store, opened together for a step."""

    database: DatabaseResource
    store: StoreResource
    web_url: str = Field(default="", description="MAIL_WEB_URL, for links to the pages of months")
    jobs: int = Field(default=1, description="MAIL_JOBS: number of worker processes of a step")

    @contextmanager
    def open(
        self, context: dg.AssetExecutionContext | dg.OpExecutionContext
    ) -> Iterator[Workspace]:
        """Yield the workspace of a run; its database session is named after the asset or op."""
        is_op = isinstance(context, dg.OpExecutionContext)
        role = context.op.name if is_op else context.asset_key.path[-1]
        try:
            with (
                self.database.connect(role, context.run.run_id) as connection,
                WorkerPool(self.jobs) as workers,
            ):
                log, key = context.log.info, self.database.key_source
                yield Workspace(connection, self.store.open(), log, key, workers)
        except (dg.Failure, dg.RetryRequested):
            raise
        except Exception as error:
            if full := find_full_disk(error, self._folders()):
                raise fail_step(error, str(full)) from error
            if isinstance(error, (MailAssetsError, psycopg.OperationalError)):
                raise fail_step(error) from error
            raise

    def _folders(self) -> list[Path]:
        store = store_folder(self.store.url)
        return [Path(self.database.home), *([store] if store else [])]


class AlertsResource(dg.ConfigurableResource):
    """A webhook that accepts messages in Slack's format."""

    url: str = Field(default="", description="MAIL_ALERT_URL; empty to post nothing")
    ui_url: str = Field(default="", description="MAIL_UI_URL, for links to runs")

    def post(self, text: str) -> None:
        """Post a text in Slack's markup."""
        post_message(self.url, text)

    def run_link(self, run_id: str) -> str:
        """Return a run's short id, as a link if MAIL_UI_URL is set."""
        label = f"run {run_id[:8]}"
        return f"<{self.ui_url}/runs/{run_id}|{label}>" if self.ui_url else label


class ArchiveSourceResource(dg.ConfigurableResource):
    """The archives of each list of lists.toml at its source."""

    sources: dict[str, str] = Field(description="list -> its source in lists.toml")
    starts: dict[str, str] = Field(description="list -> its first month, YYYY-MM")
    cache: str = Field(description="folder for mirrors and for cached facts about sources")
    http_auth: str = Field(default="", description="MAIL_HTTP_AUTH, USER:PASSWORD")
    redirect_hosts: dict[str, list[str]] = Field(
        default_factory=dict, description="list -> hosts that its source may redirect to"
    )
    _opened: dict[str, ArchiveSource] = PrivateAttr(default_factory=dict)

    def of(self, list_name: str) -> ArchiveSource:
        """Return the source of a list; the same object in a run, as it may cache its listing."""
        if list_name not in self._opened:
            self._opened[list_name] = self._open(list_name)
        return self._opened[list_name]

    def for_listing(self, list_name: str, timeout: float) -> ArchiveSource:
        """Return a source that tries once, for `timeout` seconds, because a sensor tries again."""
        return self._open(list_name, attempts=1, connect_timeout=timeout, read_timeout=timeout)

    def _open(self, list_name: str, **limits: Any) -> ArchiveSource:
        source, start = self.sources[list_name], self.starts[list_name]
        hosts = tuple(self.redirect_hosts.get(list_name, ()))
        options = HttpOptions(auth=self.http_auth, redirect_hosts=hosts, **limits)
        return open_source(list_name, source, start=start, options=options, cache=Path(self.cache))


class RepositoriesResource(dg.ConfigurableResource):
    """The git repositories of lists.toml and the lists that discuss them."""

    sources: dict[str, str] = Field(description="repository -> its source in lists.toml")
    branches: dict[str, str] = Field(description="repository -> its branch; empty for HEAD")
    lists: dict[str, list[str]] = Field(description="repository -> the lists that discuss it")
    prefixes: dict[str, str] = Field(description="repository -> the word that marks its patches")
    cache: str = Field(description="folder for mirrors and for cached facts about branches")
    http_auth: str = Field(default="", description="MAIL_HTTP_AUTH, USER:PASSWORD")
    _opened: dict[str, CommitSource] = PrivateAttr(default_factory=dict)

    def of_list(self, list_name: str) -> dict[str, CommitSource]:
        """Return the repositories whose first list is `list_name`; the same objects in a run."""
        return {
            name: self._open(name) for name, (first, *_) in self.lists.items() if first == list_name
        }

    def by_list(self) -> dict[str, dict[str, CommitSource]]:
        """Return list -> its repositories, for lists that have some."""
        return {
            name: self.of_list(name) for name in sorted({one[0] for one in self.lists.values()})
        }

    @property
    def discussed(self) -> dict[str, Discussed]:
        """Repository -> its lists and its prefix."""
        return {
            name: Discussed(tuple(some), self.prefixes[name]) for name, some in self.lists.items()
        }

    def _open(self, name: str) -> CommitSource:
        if name not in self._opened:
            options = HttpOptions(auth=self.http_auth)
            cache = Path(self.cache)
            self._opened[name] = CommitSource(
                name, self.sources[name], self.branches[name], cache, options
            )
        return self._opened[name]


class EncoderResource(dg.ConfigurableResource):
    """The encoder of texts: a model profile with a precision, or a model on a server.

    The fingerprint and the tokenizer are cheap. Encoding the first text opens the model or the
    connection.
    """

    name: str = Field(description="MAIL_ENCODER: the profile's name, or openai:MODEL@URL")
    precision: str = Field(description="MAIL_PRECISION: int8, fp32, static; on a server: served")
    provider: str = Field(default="cpu", description="MAIL_PROVIDER: cpu, cuda or openvino")
    cache: str = Field(description="MAIL_MODEL_DIR: model folders and prepared ONNX files")

    @property
    def model(self) -> LocalModel | RemoteModel:
        """The model: dimension, prefixes, limits."""
        return resolve_model(self.name)

    @property
    def sizes(self) -> ChunkSizes:
        """The sizes of chunks for this model."""
        return self.model.sizes

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides the meaning of a vector."""
        return compute_fingerprint(self.name, self.precision)

    @property
    def dimension(self) -> int:
        """Length of the vectors; a server is asked for it."""
        return self.model.dimension or self.encode_documents([]).shape[1]

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without truncation or padding."""
        return _tokenizer(self.name, self.cache)

    @property
    def tokens_used(self) -> int:
        """Tokens that a server has counted for this process; 0 for a local model."""
        if isinstance(self.model, LocalModel):
            return 0
        return self._opened.tokens_used if isinstance(self._opened, RemoteEncoder) else 0

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait for other local encoders of this machine, and block them during the context."""
        return self._opened.wait_turn(report_wait)

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector per text, shape (n, dimension)."""
        return self._opened.encode_documents(texts)

    @property
    def _opened(self) -> "Encoder":
        return _encoder(self.name, self.precision, self.cache, self.provider)


@functools.cache
def _tokenizer(name: str, cache: str) -> Tokenizer:
    return open_tokenizer(name, Path(cache))


@functools.cache
def _encoder(name: str, precision: str, cache: str, provider: str) -> "Encoder":
    # cached per process, because a run has many steps
    return open_encoder(name, precision, Path(cache), provider)


class VectorBucketResource(dg.ConfigurableResource):
    """The vector bucket: LanceDB, S3 Vectors, Supabase or pgvector, depending on the URL."""

    url: str = Field(description="MAIL_VECTORS: lance:, s3vectors://, supabase:// or pgvector:")
    database: DatabaseResource = Field(description="the server of pgvector:")

    def open(self) -> Bucket:
        """Open the bucket; credentials come from the environment."""
        return open_mail_bucket(self.database.database, self.url)

    def check(self) -> None:
        """Check that the bucket can be filled, before texts are encoded for it.

        Raises:
            BucketError: it cannot be filled.
        """
        check_mail_bucket(self.database.database, self.url)

    def open_index(self, encoder: EncoderResource) -> MailVectors:
        """Open the index of the configured encoder, which runs of months fill; it may not exist."""
        return open_mail_vectors(self.open(), self.url, encoder.name, encoder.precision)

    def open_live_index(
        self, connection: psycopg.Connection, encoder: EncoderResource
    ) -> MailVectors:
        """Open the live index, or the index of the configured encoder if none is live yet."""
        name, precision = live_encoder(connection, self.url, encoder.name, encoder.precision)
        return open_mail_vectors(self.open(), self.url, name, precision)


class WordsResource(dg.ConfigurableResource):
    """The word index: LanceDB in a folder or on S3-like storage."""

    url: str = Field(description="MAIL_WORDS: lance:PATH or lance:s3://BUCKET/PREFIX")

    def open(self) -> MailWords:
        """Open the index of this version; it may not exist. The environment has credentials."""
        return open_mail_words(self.url)


class SearchResource(dg.ConfigurableResource):
    """Search in the live index, for any op or asset."""

    database: DatabaseResource
    vector_bucket: VectorBucketResource
    words: WordsResource
    encoder: EncoderResource
    languages: dict[str, str] = Field(description="list -> text search configuration")

    @property
    def vectors(self) -> str:
        """The URL of the bucket."""
        return self.vector_bucket.url

    def open(self) -> AbstractContextManager[Searcher]:
        """Open a searcher; its first semantic query loads the model."""
        return open_searcher(self._settings)

    def open_index(self, bucket: str, index: IndexRecord) -> AbstractContextManager[Searcher]:
        """Open a searcher over one index of a bucket, live or not."""
        return open_searcher(self._settings, index=index, bucket=bucket)

    @property
    def _settings(self) -> SearchSettings:
        return SearchSettings(
            self.database.database,
            self.vectors,
            self.words.url,
            self.encoder.name,
            self.encoder.precision,
            Path(self.encoder.cache),
            self.languages,
        )


class SummariesResource(dg.ConfigurableResource):
    """The maker of thread summaries: rules, or a chat model on a server."""

    model: str = Field(default="", description="MAIL_CHAT_MODEL; empty if rules make summaries")
    url: str = Field(default="", description="MAIL_CHAT_URL")
    key: str = Field(default="", description="MAIL_CHAT_KEY")
    budget: int = Field(default=0, description="MAIL_CHAT_BUDGET: most tokens sent of a thread")
    tokens: int = Field(default=0, description="MAIL_SUMMARY_TOKENS: most tokens used by a run")

    @property
    def fingerprint(self) -> str:
        """Digest of everything except the messages that decides a summary."""
        return chat_fingerprint(self._chat) if self.model else ExtractiveMaker().fingerprint

    @contextmanager
    def open(self) -> Iterator[Maker]:
        """Yield the maker of summaries for a run."""
        if not self.model:
            yield ExtractiveMaker()
            return
        with Client(Server("MAIL_CHAT", self.url, self.key)) as client:
            yield ChatMaker(client, self._chat, self.tokens)

    @property
    def _chat(self) -> ChatModel:
        return ChatModel(self.model, self.url, self.budget)
