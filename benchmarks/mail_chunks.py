"""Real chunks for the benchmarks: archives parsed and cut as in the pipeline."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.text.chunking import ChunkSizes, build_document, chunk_body


class MailChunk(NamedTuple):
    """The text of one chunk as the encoder sees it, and its number of tokens."""

    message_id: str
    text: str
    tokens: int


def messages(archives: Path, dialect: str) -> Iterator[Message]:
    """Every readable message of a folder of monthly archives, each id once."""
    seen: set[str] = set()
    for path in sorted(archives.iterdir()):
        for raw in split_archive(path, dialect):
            try:
                message = parse_message(raw, month="2000-01", dialect=dialect)
            except UnreadableMessageError:
                continue
            if message.message_id not in seen:
                seen.add(message.message_id)
                yield message


def chunks_of(message: Message, tokenizer: Tokenizer, sizes: ChunkSizes) -> Iterator[MailChunk]:
    """The chunks of one message, as the pipeline cuts them."""
    body = message.body_text
    spans = new_text_spans(body, segment_body(body))
    for piece in chunk_body(body, spans, message.subject_base, tokenizer, sizes).chunks:
        text = build_document(message.subject_base, piece.text)
        yield MailChunk(message.message_id, text, piece.tokens)
