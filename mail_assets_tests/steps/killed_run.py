"""A run of the chain that kills its own process at a given point; started by test_killed.py.

After SIGKILL nothing is cleaned up: no `finally`, no rollback, no flush.
"""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from typing import Any

from mail_assets.processes.workers import WorkerPool
from mail_assets.steps import cut_chunks as chunks
from mail_assets.steps import encode_chunks as embeddings
from mail_assets.steps import fetch_archive as archives
from mail_assets.steps import load_messages as messages
from mail_assets.steps import read_month
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.index import Document
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.world import Hashing, World


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(module: object, name: str, number: int) -> None:
    """Die instead of making the n-th call of a function."""
    function: Callable[..., Any] = getattr(module, name)
    calls = 0

    def counted(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            die()
        return function(*arguments, **named)

    setattr(module, name, counted)


def put_half(backend: Any) -> None:
    """Die with half of the entries in an index."""
    insert = backend.insert

    def half(index: Any, new: Iterable[Any]) -> None:
        insert(index, [*new][::2])
        die()

    backend.insert = half


def die_in_upkeep() -> None:
    """Die when the upkeep of the filled word index has written a file."""
    insert, folder = LanceWordIndex.insert, Path("words")

    def watch(before: int) -> None:
        while len([*folder.rglob("*")]) == before:
            pass
        die()

    def insert_and_maintain(index: LanceWordIndex, new: Iterable[Document]) -> None:
        insert(index, new)
        Thread(target=watch, args=(len([*folder.rglob("*")]),), daemon=True).start()
        index.maintain()
        die()

    setattr(LanceWordIndex, "insert", insert_and_maintain)  # noqa: B010


POINTS: dict[str, Callable[[], None]] = {
    "archives: file kept, row not written": lambda: at_call(archives, "write_archive", 1),
    "messages: in the middle of parsing": lambda: at_call(read_month, "parse_message", 3),
    "messages: while processes parse": lambda: at_call(read_month, "digest_message", 14),
    "messages: in the middle of the copy": lambda: at_call(read_month, "encode_row", 3),
    "messages: rows written, old ones there": lambda: at_call(messages, "delete_rows", 1),
    "messages: rows without their places": lambda: at_call(messages, "replace_entries", 1),
    "messages: before the commit": lambda: at_call(messages, "write_state", 1),
    "words: half of them put": lambda: put_half(LanceWordIndex),
    "words: in the middle of upkeep": die_in_upkeep,
    "chunks: in the middle of the copy": lambda: at_call(chunks, "chunk_body", 3),
    "embeddings: with two parts done": lambda: at_call(Hashing, "encode_documents", 3),
    "embeddings: in the middle of the file": lambda: at_call(Path, "replace", 4),
    "embeddings: file written, state not": lambda: at_call(embeddings, "digest_of", 1),
    "vectors: half of them put": lambda: put_half(LanceIndex),
}


def run_and_die(point: str, home: Path, dsn: str) -> None:
    embeddings.PART = 2
    read_month.BATCH_MESSAGES = 1
    POINTS[point]()
    os.chdir(home)
    world = World(home, dsn)
    world.workers = WorkerPool(2 if "processes" in point else 1)
    world.chain()
