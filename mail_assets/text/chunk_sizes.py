"""Sizes of chunks, and the version of the chunker.

Settings import this module without loading a tokenizer.
"""

from typing import NamedTuple

#: Part of every fingerprint: raise it when chunking.py cuts other chunks.
CHUNKER_VERSION = "1"

# Bytes in UTF-8. A tokenizer makes at most one token of each byte (WordPiece makes three of a
# Hangul syllable), so this also limits the tokens. Few subjects are longer than 120 characters.
MAX_HEADER_BYTES = 160
MIN_ROOM = 32  # tokens left next to the longest header


class ChunkSizes(NamedTuple):
    """Chunk sizes in tokens, without [CLS] and [SEP]. They belong to the model."""

    target: int
    max_tokens: int
    min_tokens: int
    overlap: int
    max_chars: int = 8000  # a run of 60,000 letters is one unknown token
    max_chunks: int = 64  # per message; real mail has log pastes of 70,000 tokens

    def with_header(self, tokens: int) -> "ChunkSizes":
        """Return the sizes for the text next to a header of `tokens` tokens."""
        room = self.max_tokens - tokens
        return self._replace(target=min(self.target, room), max_tokens=room)

    def check(self) -> None:
        """Raise ValueError if sizes contradict each other or leave no room next to a header."""
        if self.max_tokens < MAX_HEADER_BYTES + MIN_ROOM:
            raise ValueError(
                f"max_tokens is {self.max_tokens}: at least {MAX_HEADER_BYTES + MIN_ROOM} are "
                f"needed, {MAX_HEADER_BYTES} of them for the longest header"
            )
        if (
            not 0 <= self.overlap < self.target <= self.max_tokens
            or min(self.max_chars, self.max_chunks) < 1
        ):
            raise ValueError(
                f"sizes must obey 0 <= overlap < target <= max_tokens and be positive: {self}"
            )
