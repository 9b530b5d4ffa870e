"""Vectors of a source's texts, found again by the texts that a corpus made of them.

A text of the corpus has other rare words than the text of the source that it was made of, and its
chunks may be cut elsewhere. What both have are the words that stay, in their order: a text is known
by the smallest hashes of some neighbouring ones (Broder, On the resemblance and containment of
documents, 1997), and the text of the source that shares most of them is taken.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from benchmarks.corpus.source import Message, SourceList, read_source
from benchmarks.corpus.transplant import Transplant
from benchmarks.corpus.vocabulary import NO_WORDS, WORD, Renaming, read_vocabulary
from benchmarks.mail_chunks import chunks_of
from mail_assets.encoding.local_encoder import LocalEncoder
from mail_assets.encoding.static_encoder import StaticEncoder
from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message

#: Neighbouring words that are hashed together, the hashes that are kept of a text, and those of
#: them that must agree.
SHINGLE, KEPT, AGREEING = 4, 12, 3
#: Texts that are encoded between two lines of progress.
BATCH = 500

_WORD = re.compile(rb"[a-z0-9]+")

Vectors = npt.NDArray[np.float32]


class Texts(Protocol):
    """Finds the vector of the source's text that a text was made of."""

    def find(self, text: str) -> Vectors | None:
        """Return a unit vector, None where no text of the source is near."""


class NoTexts:
    """Knows no text: every vector is made up."""

    def find(self, text: str) -> Vectors | None:
        """Return None."""
        return None


class SourceVectors:
    """The recorded texts: `owners` has the number of a vector by each hash of its text."""

    def __init__(self, staying: frozenset[bytes], vectors: Vectors) -> None:
        self.staying, self.vectors = staying, vectors
        self.owners: dict[int, int] = {}

    def add(self, text: str, number: int) -> None:
        """Remember the text of a vector; hashes that another text has stay with that one."""
        for one in sketch(text, self.staying):
            self.owners.setdefault(one, number)

    def find(self, text: str) -> Vectors | None:
        """Return the vector of the text that most hashes speak for."""
        hashes = sketch(text, self.staying)
        votes = Counter(self.owners[one] for one in hashes if one in self.owners)
        if not votes:
            return None
        number, count = votes.most_common(1)[0]
        return self.vectors[number] if count >= min(AGREEING, len(hashes)) else None


def sketch(text: str, staying: frozenset[bytes]) -> list[int]:
    """Return the smallest hashes of neighbouring words that stay; of a few words, their one."""
    words = [
        word
        for word in _WORD.findall(text.lower().encode())
        if word in staying or not WORD.fullmatch(word)
    ]
    hashes = {
        crc32(b" ".join(words[at : at + SHINGLE])) for at in range(max(1, len(words) - SHINGLE + 1))
    }
    return sorted(hashes)[:KEPT] if words else []


class Rate(NamedTuple):
    """Cost of encoding: texts, and seconds of the processor and of the clock."""

    texts: int
    processor: float
    clock: float


def record(
    encoder: LocalEncoder | StaticEncoder, archives: Path, table: Path, limit: int | None = None
) -> Rate:
    """Encode the chunks of a corpus's source into a table, `limit` of each list at most."""
    lists = read_source(archives)
    vocabulary = read_vocabulary(message for one in lists for message in _messages(one))
    found = [text for one in lists for text in islice(_texts(one, encoder), limit)]
    vectors = np.empty((len(found), encoder.dimension), np.float32)
    clock, processor = time.perf_counter(), time.process_time()
    for start in range(0, len(found), BATCH):
        batch = found[start : start + BATCH]
        vectors[start : start + len(batch)] = encoder.encode_documents(batch)
        print(f"{start + len(batch)} of {len(found)} texts", flush=True)
    rate = Rate(len(found), time.process_time() - processor, time.perf_counter() - clock)
    words = b" ".join(sorted(vocabulary.staying))
    with table.open("wb") as file:
        np.savez(file, vectors=vectors.astype(np.float16), texts=found, words=words)
    return rate


def read_table(table: Path) -> SourceVectors:
    """Return what `record` wrote."""
    with np.load(table) as file:
        staying = frozenset(file["words"].item().split())
        known = SourceVectors(staying, file["vectors"].astype(np.float32))
        for number, text in enumerate(file["texts"]):
            known.add(str(text), number)
    return known


def _messages(one: SourceList) -> Iterator[Message]:
    return chain.from_iterable(one.months.values())


def _texts(one: SourceList, encoder: LocalEncoder | StaticEncoder) -> Iterator[str]:
    """Yield the chunks of a list, each text once, as the pipeline cuts them."""
    seen: set[str] = set()
    for month, messages in one.months.items():
        for pieces in messages:
            raw = Transplant(Renaming(NO_WORDS, 0), 0).write(pieces, years=0).raw
            try:
                message = parse_message(
                    RawMessage(0, len(raw), b"", raw, False, False), month=month, dialect="mboxrd"
                )
            except UnreadableMessageError:
                continue
            for chunk in chunks_of(message, encoder.tokenizer, encoder.model.sizes):
                if chunk.text not in seen:
                    seen.add(chunk.text)
                    yield chunk.text
