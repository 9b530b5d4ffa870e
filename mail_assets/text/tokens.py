"""The tokens of a text: where each begins, and which word it is a piece of."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

#: What stands between characters at which BERT's tokenizer splits, whatever is beside it.
_RUN = re.compile(r"[^ \t\n\r]+")
# Of the runs in mail 9 in 10 have been met before. Longer ones are links and rules.
_CACHED, _LONGEST_CACHED = 1 << 16, 40

#: The tokens of a run: where each begins in it, and whether a word begins there.
_Pieces = tuple[tuple[int, bool], ...]


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
    """Tokenise without the special tokens.

    Of BERT's tokenizers a run of characters between blanks gives the same tokens wherever it
    stands, so those known are not made again: a message takes a third of the time.
    """
    known = _known_runs(tokenizer)
    if known is None:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        starts = [start for start, _ in encoding.offsets]
        return Tokens([0, *starts[1:], len(text)], encoding.word_ids)
    if len(known) > _CACHED:
        known.clear()
    runs = [(run[0], run.start()) for run in _RUN.finditer(text)]
    learnt = _encode_runs({run for run, _ in runs if run not in known}, tokenizer)
    known.update((run, learnt[run]) for run in learnt if len(run) <= _LONGEST_CACHED)
    starts, words, word = [], [], -1
    for run, at in runs:
        for start, begins in learnt[run] if run in learnt else known[run]:
            word += begins
            starts.append(at + start)
            words.append(word)
    return Tokens([0, *starts[1:], len(text)], [*words])


def count_tokens(text: str, tokenizer: Tokenizer) -> int:
    """Count the tokens of a text, the special ones left out."""
    return len(tokenise(text, tokenizer).words)


@lru_cache(maxsize=4)
def _known_runs(tokenizer: Tokenizer) -> dict[str, _Pieces] | None:
    """Return the runs that a tokenizer was asked for, to be added to; None of one unlike BERT's."""
    bert = isinstance(tokenizer.normalizer, BertNormalizer) and isinstance(
        tokenizer.pre_tokenizer, BertPreTokenizer
    )
    return {} if bert else None


def _encode_runs(runs: Collection[str], tokenizer: Tokenizer) -> dict[str, _Pieces]:
    """Return the tokens of some runs, encoded in one call: each takes 30 microseconds."""
    if not runs:
        return {}
    ordered = [*runs]
    edges = [0, *accumulate(len(run) + 1 for run in ordered)]
    encoding = tokenizer.encode(" ".join(ordered), add_special_tokens=False)
    found: list[list[tuple[int, bool]]] = [[] for _ in ordered]
    former: int | None = None
    for (start, _), word in zip(encoding.offsets, encoding.word_ids, strict=True):
        at = bisect_right(edges, start) - 1
        found[at].append((start - edges[at], word != former))
        former = word
    return {run: tuple(pieces) for run, pieces in zip(ordered, found, strict=True)}
