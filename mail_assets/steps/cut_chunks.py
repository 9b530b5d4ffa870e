"""Cut the new text of one month's messages into chunks of the encoder's size."""

import hashlib
import time
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer

from mail_assets.mail.body.segments import new_text_spans
from mail_assets.month import ListMonth
from mail_assets.tables.chunks import ChunkRow, chunk_key, replace_chunks
from mail_assets.tables.messages import ChunkSource, read_texts
from mail_assets.tables.partitions import Counts, Partition, State, locked, read_state, write_state
from mail_assets.text.chunk_sizes import CHUNKER_VERSION, ChunkSizes
from mail_assets.text.chunking import build_document, chunk_body
from mail_assets.workspace import Outcome, Workspace, rate, read_made

ASSET = "chunks"


def cut_chunks(
    workspace: Workspace,
    month: ListMonth,
    tokenizer: Tokenizer,
    sizes: ChunkSizes,
    *,
    rebuild: bool = False,
) -> Outcome:
    """Bring the chunks of one month up to date with its messages, in one transaction.

    With `rebuild` they are cut again even if the messages are unchanged.

    Raises:
        StepError: messages was never materialized for this month.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        messages = read_made(connection, "messages", month)
        inputs = chunk_inputs(messages, sizes)
        state = read_state(connection, partition)
        if state and state.inputs == inputs and not rebuild:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        cutter = _Cutter(month, tokenizer, sizes)
        with connection.transaction():
            texts = read_texts(connection, month)
            replaced = replace_chunks(connection, month, cutter.rows(texts))
            seconds = time.monotonic() - began
            counts: Counts = {
                **cutter.counts(),
                "written": replaced.written,
                "deleted": replaced.deleted,
                "seconds": round(seconds, 3),
                "chunks_per_second": rate(cutter.chunks, seconds),
            }
            changed = bool(replaced.written or replaced.deleted)
            new = State(inputs, replaced.digest, counts)
            write_state(connection, partition, new, rebuild and changed)
    return Outcome(counts, replaced.digest, changed)


def chunk_inputs(messages: State, sizes: ChunkSizes) -> str:
    """Return the version of the inputs from which a month's chunks are cut."""
    return f"{messages.digest} chunker {CHUNKER_VERSION} {[*sizes]}"


class _Cutter:
    def __init__(self, month: ListMonth, tokenizer: Tokenizer, sizes: ChunkSizes) -> None:
        self._month, self._tokenizer, self._sizes = month, tokenizer, sizes
        self.chunks = self._messages = self._tokens = self._most = self._truncated = 0

    def rows(self, texts: Iterable[ChunkSource]) -> Iterator[ChunkRow]:
        for text in texts:
            self._messages += 1
            yield from self._message(text)

    def _message(self, text: ChunkSource) -> Iterator[ChunkRow]:
        spans = new_text_spans(text.body_text, text.segments)
        result = chunk_body(text.body_text, spans, text.subject, self._tokenizer, self._sizes)
        self._truncated += result.truncated
        variant_hash = text.content_hash if text.variant else ""
        for piece in result.chunks:
            self.chunks += 1
            self._tokens += piece.tokens
            self._most = max(self._most, piece.tokens)
            yield ChunkRow(
                chunk_key(self._month, text.message_id, variant_hash, piece.index),
                text.message_id,
                text.variant,
                hashlib.sha256(build_document(text.subject, piece.text).encode()).digest(),
                piece,
            )

    def counts(self) -> Counts:
        return {
            "messages": self._messages,
            "chunks": self.chunks,
            "tokens": self._tokens,
            "tokens_max": self._most,
            "truncated": self._truncated,
        }
