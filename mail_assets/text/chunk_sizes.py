"""Chunk sizes: how many tokens and characters a chunk may have. A model brings its own."""

from typing import NamedTuple

from mail_assets.text.document import MAX_HEADER_BYTES

MIN_ROOM = 32  # tokens left beside the longest header


class ChunkSizes(NamedTuple):
    """Chunk sizes in tokens, without [CLS] and [SEP]. They belong to the model."""

    target: int
    max_tokens: int
    min_tokens: int
    overlap: int
    max_chars: int = 8000  # a run of 60,000 letters is one unknown token: bound characters too
    max_chunks: int = 64  # per message; real mail holds log pastes of 70,000 tokens

    def with_header(self, tokens: int) -> "ChunkSizes":
        """Return the sizes that are left for the text beside a header of so many tokens."""
        room = self.max_tokens - tokens
        return self._replace(target=min(self.target, room), max_tokens=room)

    def check(self) -> None:
        """Raise ValueError for sizes that leave no room beside a header, or contradict."""
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
