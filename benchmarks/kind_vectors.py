"""Vectors of further kinds of content, beside those of chunks: what benchmarks.kinds compares.

    MAIL_HOME=... python -m benchmarks.kind_vectors FOLDER KIND LIST [LIST ...]

FOLDER/KIND.npz gets a vector of each text and the message that it is of. The kinds:

    chunk        what the index has, out of the store: the subject in front of each chunk
    subject      the subject of a thread, of its first message
    text         each chunk without the subject
    description  what a patch says of itself: the new text above its diff, without trailers
    diff         the lines that a patch adds, as far as the encoder reads
    summary      the subject and the extractive summary of a thread of several, of its first message
"""

import argparse
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.encoding.open import compute_fingerprint, open_encoder
from mail_assets.mail.body.segments import Segment
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.store.open import open_store
from mail_assets.summaries.extractive import summarize
from mail_assets.summaries.summary import MessageText
from mail_assets.text.chunking import build_document

#: Texts that are encoded between two lines of progress, and the characters of one that are given.
BATCH, CHARACTERS = 2_000, 2_000

#: A trailer of a commit message, and the line that ends it.
_TRAILER = re.compile(r"(?:[A-Z][a-z]+-)+(?:by|to|off-by):|Cc:|Fixes:|Link:|---$", re.ASCII)

FIRST_SUBJECTS = """
select distinct on (m.message_id) m.message_id, m.subject_base
  from messages m join threads t using (message_id)
 where m.list = %s and t.parent_id is null and m.subject_base <> ''
 order by m.message_id, m.month, m.variant
"""
CHUNK_TEXTS = "select message_id, text from chunks where list = %s and text <> '' order by key"
PATCHES = """
select distinct on (message_id) message_id, body_text, segments
  from messages
 where list = %s and segments @> '[["patch"]]'
 order by message_id, month, variant
"""

THREADS = """
select distinct on (t.thread_id, t.position)
       t.thread_id, m.subject_base, m.message_id, m.from_email, m.sent_at, t.parent_id, m.subject,
       m.body_text, m.segments
  from messages m join threads t using (message_id)
 where m.list = %s
 order by t.thread_id, t.position, m.month, m.variant
"""

Vectors = npt.NDArray[np.float32]


class KindVectors(NamedTuple):
    """The vectors of a kind, and the id of the message that each is of."""

    message_ids: list[str]
    vectors: Vectors


def main() -> None:
    """Encode the texts of a kind."""
    parser = argparse.ArgumentParser(description="Encode further kinds of content.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=["chunk", *TEXTS])
    parser.add_argument("lists", nargs="+")
    arguments = parser.parse_args()
    settings = load_settings()
    with settings.database.connect("kinds") as connection:
        if arguments.kind == "chunk":
            found = read_chunk_vectors(settings, connection, arguments.lists)
        else:
            read = TEXTS[arguments.kind]
            texts = [one for name in arguments.lists for one in read(connection, name)]
            found = encode(settings, texts)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    file = arguments.folder / f"{arguments.kind}.npz"
    np.savez(file, message_ids=np.array(found.message_ids), vectors=found.vectors)
    print(f"{file}: {len(found.message_ids)} vectors")


def read_kind(folder: Path, kind: str) -> KindVectors:
    """Return what main() has written."""
    with np.load(folder / f"{kind}.npz") as file:
        return KindVectors(file["message_ids"].tolist(), file["vectors"])


def read_chunk_vectors(
    settings: Settings, connection: psycopg.Connection, lists: list[str]
) -> KindVectors:
    """Return the vectors of all chunks, as the index has them."""
    store = open_store(settings.store)
    fingerprint = compute_fingerprint(settings.encoder, settings.precision)
    ids: list[str] = []
    vectors = []
    query = "select month, message_id, text_hash from chunks where list = %s order by month, key"
    for name in lists:
        months: dict[str, list[tuple[str, bytes]]] = {}
        for month, message_id, text_hash in connection.execute(query, [name]):
            months.setdefault(month, []).append((message_id, text_hash))
        for month, chunks in months.items():
            known = read_embeddings(store, file_key(ListMonth(name, month), fingerprint))
            ids += [message_id for message_id, _ in chunks]
            vectors += [known[text_hash] for _, text_hash in chunks]
    return KindVectors(ids, np.stack(vectors))


def encode(settings: Settings, texts: list[tuple[str, str]]) -> KindVectors:
    """Return the vectors of some texts, each distinct one encoded once."""
    encoder = open_encoder(settings.encoder, settings.precision, settings.model_cache)
    distinct = sorted({text for _, text in texts}, key=lambda text: (len(text), text))
    known: dict[str, Vectors] = {}
    began = time.monotonic()
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        known |= zip(batch, encoder.encode_documents(batch), strict=True)
        print(f"{len(known)} of {len(distinct)}, {time.monotonic() - began:.0f} s", flush=True)
    return KindVectors([one for one, _ in texts], np.stack([known[text] for _, text in texts]))


def read_subjects(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield the first message of each thread with its subject."""
    yield from connection.execute(FIRST_SUBJECTS, [name])


def read_texts(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each chunk with its message."""
    yield from connection.execute(CHUNK_TEXTS, [name])


def read_descriptions(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield each patch with the new text above its diff, without trailers."""
    for message_id, body, segments in connection.execute(PATCHES, [name]):
        first = next(start for start, _, kind in segments if kind == "patch")
        texts = (
            body[start:end] for start, end, kind in segments if kind == "text" and end <= first
        )
        lines = "".join(texts).split("\n")
        lines = [line for line in lines if not _TRAILER.match(line.strip())]
        if text := "\n".join(lines).strip():
            yield message_id, text[:CHARACTERS]


def read_diffs(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield each patch with the lines that it adds."""
    for message_id, body, segments in connection.execute(PATCHES, [name]):
        diff = "\n".join(body[start:end] for start, end, kind in segments if kind == "patch")
        added = [line[1:] for line in diff.split("\n") if re.match(r"\+(?!\+\+ )", line)]
        if text := "\n".join(added).strip():
            yield message_id, text[:CHARACTERS]


def read_summaries(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield the first message of each thread of several with the thread's summary."""
    rows = connection.execute(THREADS, [name])
    for _, thread in groupby(rows, key=lambda row: row[0]):
        posts = [*thread]
        if len(posts) > 1:
            messages = [_message(post[2:]) for post in posts]
            said = " ".join(" ".join(one.text.split()) for one in summarize(messages).sentences)
            yield messages[0].message_id, build_document(posts[0][1], said)[:CHARACTERS]


def _message(columns: Sequence[Any]) -> MessageText:
    message_id, author, sent_at, parent_id, subject, body, segments = columns
    parts = tuple(Segment(*one) for one in segments)
    return MessageText(message_id, author, sent_at, parent_id, subject, body, parts)


TEXTS: dict[str, Callable[[psycopg.Connection, str], Iterator[tuple[str, str]]]] = {
    "subject": read_subjects,
    "text": read_texts,
    "description": read_descriptions,
    "diff": read_diffs,
    "summary": read_summaries,
}


if __name__ == "__main__":
    main()
