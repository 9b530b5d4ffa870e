"""The tokens of a text: where each begins, and which word it is a piece of."""

from bisect import bisect_left
from typing import NamedTuple

from tokenizers import Tokenizer


class Tokens(NamedTuple):
    """Tokens of a text. Characters without a token belong to the token on their left."""

    starts: list[int]  # first character of each token, and the length of the text
    words: list[int | None]  # number of the word of which each token is a piece

    def begins_word(self, i: int) -> bool:
        """Tell whether nothing is torn apart before token i; true at both ends of the text."""
        return i in (0, len(self.words)) or self.words[i] != self.words[i - 1]

    def at(self, character: int) -> int:
        """Return the first token that begins at or after a character, else their number."""
        return bisect_left(self.starts, character, 0, len(self.words))


def tokenise(text: str, tokenizer: Tokenizer) -> Tokens:
    """Tokenise without the special tokens."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    starts = [start for start, _ in encoding.offsets]
    return Tokens([0, *starts[1:], len(text)], encoding.word_ids)


def count_tokens(text: str, tokenizer: Tokenizer) -> int:
    """Count the tokens of a text, the special ones left out."""
    return len(tokenizer.encode(text, add_special_tokens=False))
