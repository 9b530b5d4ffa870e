"""The marked set: sentences of real threads that belong in a summary, marked by a person.

marked/README.md says how it was drawn and marked. It holds digests and spans, no mail, so it can
be scored only where the archives are.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.segments import cut_by_endings
from mail_assets.mail.message.message import Message
from mail_assets.summaries.summary import MessageText, Part
from mail_assets_tests.mail.body.labelled_lines import read_month

THREADS = Path(__file__).parent / "marked" / "threads.jsonl"

_PARTS: dict[str, Part] = {"q": "question", "d": "discussion", "o": "outcome"}
_HASH = 8  # hex digits of a sentence's SHA-256
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Piece:
    """A sentence that was marked or chosen: characters of the body of a thread's message."""

    message: int
    start: int
    end: int
    part: Part
    text_hash: str

    def is_same(self, other: "Piece") -> bool:
        """Return whether both are one sentence, or the same words in two messages."""
        if self.text_hash == other.text_hash:
            return True
        shared = min(self.end, other.end) - max(self.start, other.start)
        whole = max(self.end, other.end) - min(self.start, other.start)
        return self.message == other.message and 2 * shared >= whole


@dataclass(frozen=True)
class MarkedThread:
    """A thread: the digests of its messages in order, each with the place of its parent."""

    list_name: str
    months: tuple[str, ...]
    held_back: bool
    messages: tuple[tuple[str, int | None], ...]
    marks: tuple[Piece, ...]


@cache
def read_marked_threads() -> tuple[MarkedThread, ...]:
    rows = [json.loads(row) for row in THREADS.read_text(encoding="utf-8").splitlines()]
    return tuple(
        MarkedThread(
            row["list"],
            tuple(row["months"]),
            row["held_back"],
            tuple((digest, parent) for digest, parent in row["messages"]),
            tuple(
                Piece(message, start, end, _PARTS[part], text_hash)
                for message, start, end, part, text_hash in row["marks"]
            ),
        )
        for row in rows
    )


def read_messages(archives: Path, thread: MarkedThread) -> tuple[MessageText, ...]:
    """Return the messages of a marked thread, with their segments as the pipeline cuts them."""
    wanted = {digest for digest, _ in thread.messages}
    found: dict[str, MessageText] = {}
    for month in thread.months:
        messages = list(read_month(archives, thread.list_name, month))
        for message, text in zip(messages, _cut_month(messages), strict=True):
            digest = hashlib.sha256(message.message_id.encode()).hexdigest()
            if digest in wanted:
                found.setdefault(digest, text)
    missing = wanted - found.keys()
    if missing:
        raise LookupError(f"{thread.list_name} {thread.months}: {len(missing)} messages are gone")
    ids = [found[digest].message_id for digest, _ in thread.messages]
    return tuple(
        MessageText(**{**vars(found[digest]), "parent_id": None if parent is None else ids[parent]})
        for digest, parent in thread.messages
    )


def _cut_month(messages: Sequence[Message]) -> Iterator[MessageText]:
    """Yield the messages of a month, without parents."""
    cut = cut_by_endings(messages)
    for m in messages:
        parts = cut(m)
        author = m.from_name or m.from_email
        yield MessageText(
            m.message_id, author, m.sent_at, None, m.subject, m.body_text, tuple(parts)
        )


def make_piece(
    messages: Sequence[MessageText], message: int, span: tuple[int, int], part: Part
) -> Piece:
    """Return a sentence of a thread as it is compared with marks."""
    start, end = span
    text = " ".join(messages[message].body[start:end].split())
    return Piece(message, start, end, part, hashlib.sha256(text.encode()).hexdigest()[:_HASH])


def score_f1(chosen: Sequence[Piece], marks: Sequence[Piece]) -> float:
    """Return F1 of the sentences: chosen that were marked, marked that were chosen."""
    right = sum(any(one.is_same(mark) for mark in marks) for one in chosen)
    found = sum(any(mark.is_same(one) for one in chosen) for mark in marks)
    precision = right / len(chosen) if chosen else 0.0
    recall = found / len(marks) if marks else 0.0
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def score_rouge_2(
    messages: Sequence[MessageText], chosen: Sequence[Piece], marks: Sequence[Piece]
) -> float:
    """Return F1 of the pairs of words in a row, ROUGE-2 (Lin 2004)."""
    mine, theirs = _count_pairs(messages, chosen), _count_pairs(messages, marks)
    shared = (mine & theirs).total()
    return 2 * shared / (mine.total() + theirs.total()) if shared else 0.0


def _count_pairs(
    messages: Sequence[MessageText], pieces: Sequence[Piece]
) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for one in pieces:
        words = _WORD.findall(messages[one.message].body[one.start : one.end].lower())
        pairs.update(itertools.pairwise(words))
    return pairs
