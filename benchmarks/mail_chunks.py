"""Real chunks for the benchmarks: archives through the same rooms as in the pipeline.

What does not live here: anything that measures.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.mail.archive.mbox import split
from mail_assets.mail.body.segments import new_spans, segments
from mail_assets.mail.message.parse import Message, Unreadable, parse_message
from mail_assets.text.chunking import Sizes, chunk, document


class MailChunk(NamedTuple):
    """What the encoder gets to see of one chunk, and what it is counted to have in tokens."""

    message_id: str
    text: str
    tokens: int


def messages(archives: Path, dialect: str) -> Iterator[Message]:
    """Every readable message of a folder of monthly archives, each id once."""
    seen: set[str] = set()
    for path in sorted(archives.iterdir()):
        for raw in split(path, dialect):
            try:
                message = parse_message(
                    raw.raw, month="2000-01", from_line=raw.from_line, dialect=dialect
                )
            except Unreadable:
                continue
            if message.message_id not in seen:
                seen.add(message.message_id)
                yield message


def chunks_of(message: Message, tokenizer: Tokenizer, sizes: Sizes) -> Iterator[MailChunk]:
    """The chunks of one message, as the pipeline cuts them."""
    body = message.body_text
    spans = new_spans(body, segments(body))
    for piece in chunk(body, spans, message.subject_base, tokenizer, sizes).chunks:
        text = document(message.subject_base, piece.text)
        yield MailChunk(message.message_id, text, piece.tokens)
