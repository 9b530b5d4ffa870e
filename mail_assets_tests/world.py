"""A small world for the tests of the chain: lists in a folder, a database, a store, two indexes.

It has hand-made archives, an encoder without a model, each step as one call, and snapshots to
compare.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import lancedb
import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.local_encoder import encoder_lock
from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.forgetting.forget import ForgetReport, ForgetRequest, cut_archives, forget_messages
from mail_assets.indexes.vectors import MailVectors, index_spec, open_known_index
from mail_assets.indexes.words import MailWords, open_mail_words
from mail_assets.mail.message.forgotten import Digests
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.processes.workers import WorkerPool
from mail_assets.settings.lists import MailingList
from mail_assets.settings.settings import Settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.fill_index import write_vectors, write_words
from mail_assets.steps.group_series import group_series
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.read_patches import make_patches
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets.summaries.extractive import ExtractiveMaker
from mail_assets.tables.removals import KeySource, find_key
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.words.lance_query import to_matches
from mail_assets.workspace import ListDefaults, Outcome, Workspace
from mail_assets_tests.databases import borrow_session

#: Cached, because reading a tokenizer file takes 0.03 s.
read_tokenizer = functools.cache(load_tokenizer)

#: The profile whose tokenizer, sizes and index the tests use.
PROFILE = "all-minilm-l6-v2"

HARBOR, PIER = "harbor", "pier"
MARCH, APRIL, MAY = "2024-03", "2024-04", "2024-05"

#: The key for digests of forgotten mail.
FORGET_KEY = "2a" * 32
DIGESTS = Digests(bytes.fromhex(FORGET_KEY))

#: Time of the first version of all archives, in seconds since 1970; fixed, so that versions repeat.
EPOCH = 1_700_000_000

STEPS = ("archives", "messages", "words", "patches", "chunks", "embeddings", "vectors")


#: The columns of messages, without the time of loading.
MESSAGES = "to_jsonb(messages) - case when arrival_source = 'loaded' then 'arrived_at' else '' end"


class Killed(BaseException):
    """Exception in place of a kill of this process."""


#: A From_ line that differs from that of `mail`: a month with equal lines has no arrival times.
LATER = "From ann@example.org Tue Mar  5 09:00:00 2024"


def mail(
    name: str,
    body: str = "",
    *,
    subject: str = "",
    sender: str = "ann@example.org",
    date: str = "Mon, 04 Mar 2024 09:00:00 +0000",
    references: str = "",
    headers: str = "",
    from_line: str = "From ann@example.org Mon Mar  4 09:00:00 2024",
) -> bytes:
    """Return one message of an mbox; it is dated in March 2024 unless `date` says otherwise."""
    lines = [
        from_line,
        f"From: Ann <{sender}>",
        f"Date: {date}",
        f"Message-ID: <{name}@example.org>",
        f"Subject: {subject or f'about {name}'}",
        *([f"References: {references}"] if references else []),
        *headers.splitlines(),
    ]
    return "\n".join([*lines, "", body or f"What {name} is about stands here.", "", ""]).encode()


class Hashing:
    """An encoder without a model: it makes vectors from the hash of a text."""

    fingerprint = "hashing-encoder-of-tests"

    def __init__(self, models: Path) -> None:
        self.models = models
        self.dimension = LOCAL_MODELS[PROFILE].dimension
        self.calls: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        """All texts encoded so far."""
        return [text for call in self.calls for text in call]

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Take turns with other encoders of the world, as local models do."""
        return encoder_lock(self.models, report_wait)

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text."""
        self.calls.append([*texts])
        return np.stack([_vector(text)[: self.dimension] for text in texts])


def _vector(text: str) -> npt.NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(LOCAL_MODELS[PROFILE].dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class World:
    """A folder with all files of a world, and its database."""

    #: Folder of the prepared models of all worlds; building one takes two seconds.
    models: ClassVar[Path | None] = None

    def __init__(self, home: Path, dsn: str, dialect: str | None = "plain") -> None:
        self.home, self.dsn, self.dialect = home, dsn, dialect
        self.encoder = Hashing(home / "models")
        self.bucket = f"lance:{home / 'vectors'}"
        self.words_url = f"lance:{home / 'words'}"
        self.said: list[str] = []
        self.workers = WorkerPool()
        self.keep_days = 0
        self.quality_set: Path | None = None
        for name in (HARBOR, PIER):
            self.folder(name).mkdir(parents=True, exist_ok=True)

    @property
    def store(self) -> ObjectStore:
        """The archive store."""
        return open_store(self.home / "store")

    @property
    def index(self) -> VectorIndex:
        """The vector index in the bucket; not created yet."""
        return open_bucket(self.bucket, dsn=self.dsn).index(index_spec(PROFILE, "int8"))

    @property
    def mail_index(self) -> MailVectors:
        """The index with the encoder of this world."""
        return MailVectors(self.index, self.bucket, PROFILE, "int8", self.encoder.fingerprint)

    @property
    def mail_words(self) -> MailWords:
        """The word index; not created yet."""
        return open_mail_words(self.words_url)

    @property
    def forget_key(self) -> KeySource:
        """The key of this world's digests."""
        return find_key(self.home, self.dsn, FORGET_KEY)

    def settings(self) -> Settings:
        """Return the settings of a world with both lists."""
        return Settings(
            home=self.home,
            lists_file=self.home / "lists.toml",
            first_month="2024-01",
            lists={
                name: MailingList(name, str(self.folder(name)), self.dialect, "english", "2024-01")
                for name in (HARBOR, PIER)
            },
            store=str(self.home / "store"),
            vectors=self.bucket,
            words=self.words_url,
            encoder=PROFILE,
            precision="int8",
            pg_dsn=self.dsn,
            given_forget_key=FORGET_KEY,
            quality_set=self.quality_set,
            model_dir=self.models,
        )

    def environ(self, more: str = "") -> dict[str, str]:
        """Write lists.toml with HARBOR and others; return the environment for commands."""
        lists = self.home / "lists.toml"
        lists.write_text(f'[{HARBOR}]\nsource = "{self.folder()}"\n{more}')
        return {
            "MAIL_HOME": str(self.home),
            "MAIL_MODEL_DIR": str(self.models or self.home / "models"),
            "MAIL_LISTS": str(lists),
            "MAIL_PG_DSN": self.dsn,
            "MAIL_STORE": str(self.home / "store"),
            "MAIL_VECTORS": self.bucket,
            "MAIL_WORDS": self.words_url,
            "MAIL_FORGET_KEY": FORGET_KEY,
        }

    def folder(self, list_name: str = HARBOR) -> Path:
        """Return the folder of a list's archives."""
        return self.home / "lists" / list_name

    def archive(self, month: str, *mails: bytes, list_name: str = HARBOR, at: int = 0) -> Path:
        """Write the archive of a month, with a time `at` seconds after the first version."""
        path = self.folder(list_name) / f"{list_name}.{month}.mbox"
        path.write_bytes(b"".join(mails))
        os.utime(path, (EPOCH + at, EPOCH + at))
        return path

    def load(
        self,
        *mails: bytes,
        month: str = MARCH,
        list_name: str = HARBOR,
        at: int = 0,
        last: str = "messages",
    ) -> None:
        """Write the archive of a month, and run the steps up to `last`."""
        self.archive(month, *mails, list_name=list_name, at=at)
        self.chain(month, list_name, last=last)

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        """Open a connection to the migrated database, which may show all lists."""
        with borrow_session(Database(self.home, self.dsn)) as connection:
            yield connection

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """Open the workspace of a step; `said` collects its log."""
        with self.connect() as connection:
            yield Workspace(connection, self.store, self.said.append, self.forget_key, self.workers)

    def archives(
        self,
        month: str = MARCH,
        list_name: str = HARBOR,
        *,
        allow_loss: bool = False,
        rebuild: bool = False,
    ) -> Outcome:
        """Run the step of `mbox_archives`."""
        folder = str(self.folder(list_name))
        source = open_source(
            list_name, folder, start="2024-01", options=HttpOptions(), cache=self.home / "cache"
        )
        with self.workspace() as workspace:
            options = FetchOptions(self.dialect, allow_loss, self.keep_days, rebuild)
            return fetch_archive(workspace, ListMonth(list_name, month), source, options)

    def messages(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `messages`."""
        with self.workspace() as workspace:
            return load_messages(
                workspace, ListMonth(list_name, month), ListDefaults("english"), rebuild=rebuild
            )

    def words(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `words`."""
        with self.workspace() as workspace:
            return write_words(
                workspace, ListMonth(list_name, month), self.mail_words, rebuild=rebuild
            )

    def patches(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `patches`."""
        with self.workspace() as workspace:
            return make_patches(workspace, ListMonth(list_name, month), rebuild=rebuild)

    def chunks(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `chunks`."""
        profile = LOCAL_MODELS[PROFILE]
        with self.workspace() as workspace:
            return cut_chunks(
                workspace,
                ListMonth(list_name, month),
                read_tokenizer(profile),
                profile.sizes,
                rebuild=rebuild,
            )

    def embeddings(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `embeddings`."""
        with self.workspace() as workspace:
            return encode_chunks(
                workspace, ListMonth(list_name, month), self.encoder, rebuild=rebuild
            )

    def vectors(
        self, month: str = MARCH, list_name: str = HARBOR, *, rebuild: bool = False
    ) -> Outcome:
        """Run the step of `vectors`."""
        with self.workspace() as workspace:
            return write_vectors(
                workspace, ListMonth(list_name, month), self.mail_index, rebuild=rebuild
            )

    def threads(self, *, rebuild: bool = False) -> Outcome:
        """Run the step of `threads`."""
        with self.connect() as connection:
            return build_threads(connection, self.said.append, rebuild=rebuild)

    def series(self, *, rebuild: bool = False) -> Outcome:
        """Run the step of `patch_series`."""
        with self.connect() as connection:
            return group_series(connection, self.said.append, rebuild=rebuild)

    def summaries(self, *, rebuild: bool = False) -> Outcome:
        """Run the step of `thread_summaries`, without a model."""
        with self.connect() as connection:
            said = self.said.append
            return summarize_threads(connection, ExtractiveMaker(), said, rebuild=rebuild)

    def chain(
        self,
        month: str = MARCH,
        list_name: str = HARBOR,
        last: str = "vectors",
        *,
        rebuild: bool = False,
    ) -> dict[str, Outcome]:
        """Run the steps in order, up to `last`."""
        steps = STEPS[: STEPS.index(last) + 1]
        return {step: getattr(self, step)(month, list_name, rebuild=rebuild) for step in steps}

    def fill(self, *months: str) -> None:
        """Run all steps of the given months, and build the threads."""
        for month in months:
            self.chain(month)
        self.threads()

    def forget(self, request: ForgetRequest) -> ForgetReport:
        """Forget as the command does, but do not change archives."""
        with self.workspace() as workspace:
            return forget_messages(workspace, request, self.open_index)

    def cut(self, report: ForgetReport) -> tuple[int, dict[str, str]]:
        """Remove forgotten mail from the archives of the lists."""
        with self.workspace() as workspace:
            defaults = dict.fromkeys((HARBOR, PIER), ListDefaults("english"))
            return cut_archives(workspace, report.uncut, defaults)

    def open_index(self, name: str) -> VectorIndex:
        """Open a vector index by its name in the manifest."""
        return open_known_index(Database(self.home, self.dsn), name)

    def rows(self, table: str, columns: str = "*", where: str = "true") -> list[tuple[Any, ...]]:
        """Return rows, sorted by all columns."""
        with self.connect() as connection:
            return read_rows(connection, table, columns, where)

    def writes(self) -> dict[str, object]:
        """Return row versions and file times, which change with any write."""
        tables = (
            "mbox_archives",
            "messages",
            "quarantine",
            "removed_messages",
            "patches",
            "chunks",
            "threads",
            "thread_summaries",
            "vectors",
            "words",
        )
        with self.connect() as connection:
            marks: dict[str, object] = {
                table: read_rows(connection, table, "ctid::text, xmin::text")
                for table in (*tables, "partitions")
            }
        marks["files"] = self.file_times()
        for place in ("vectors", "words"):
            marks[f"bucket {place}"] = sorted(
                (str(path), path.stat().st_mtime_ns)
                for path in (self.home / place).rglob("*")
                if path.is_file()
            )
        return marks

    def file_times(self) -> dict[str, int]:
        """Return the write times of the store's files, in nanoseconds."""
        root = self.home / "store"
        keys = self.store.keys()
        return {key: (root / key).stat().st_mtime_ns for key in keys}

    def holds(self) -> dict[str, object]:
        """Return all results of the chain, without times and paths of this world."""
        index = self.index
        index.ensure()
        self.mail_words.index.ensure()
        root, keys = self.home / "store", self.store.keys()
        with self.connect() as connection:
            rows = functools.partial(read_rows, connection)
            return {
                "mbox_archives": rows(
                    "mbox_archives", "list, month, object_key, sha256, bytes, found, content_sha256"
                ),
                "messages": rows("messages", MESSAGES),
                "quarantine": rows("quarantine"),
                "removed": rows("removed_messages"),
                "patches": rows("patches"),
                "chunks": rows("chunks"),
                "manifest": rows("vectors", "key, list, month, digest, written"),
                "words": rows("words", "key, list, month, digest, written"),
                "partitions": rows(
                    "partitions",
                    "asset, list, month, inputs, digest",
                    "asset not in ('vectors', 'words')",
                ),
                "files": {key: (root / key).read_bytes() for key in keys},
                "bucket": {
                    key: (vector.values.tobytes(), vector.metadata)
                    for key, vector in index.get(index.keys(), data=True).items()
                },
                "documents": read_documents(self.home / "words"),
            }


def read_rows(
    connection: psycopg.Connection, table: str, columns: str = "*", where: str = "true"
) -> list[tuple[Any, ...]]:
    """Return rows, sorted by all columns."""
    query = f"select {columns} from {table} where {where}"
    return sorted(connection.execute(query.encode()).fetchall(), key=repr)


def read_documents(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the documents of a word index by key, with all fields."""
    database = lancedb.connect(folder)
    [name] = database.list_tables().tables
    rows = database.open_table(name).to_arrow().to_pylist()
    matches = to_matches([row["match"] for row in rows], [0.0] * len(rows))
    documents = {
        row["key"]: row | match._asdict() for row, match in zip(rows, matches, strict=True)
    }
    assert len(documents) == len(rows), "a key stands twice"
    return documents
