"""Count who reacted to a sentence: who quoted it and wrote an answer right below."""

import re
from collections import defaultdict
from collections.abc import Sequence

from mail_assets.summaries.candidates import Candidate
from mail_assets.summaries.message_text import MessageText

_SHINGLE = 5  # words in a row that tell a sentence from another, however lines were wrapped
_NEAR = 60  # words of the quote that stand nearest to the answer
_MARK = re.compile(r"[ \t]{0,4}[A-Za-z]{0,4}[>|:][ \t]?")
_WORD = re.compile(r"\w+")


def count_reactions(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> list[int]:
    """Return for each candidate the number of later messages that answer it.

    A message answers a sentence if it quotes half of it at least, near text of its own.
    """
    holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    sizes = []
    for number, candidate in enumerate(candidates):
        shingles = set(_shingles(_WORD.findall(candidate.text.lower())))
        sizes.append(len(shingles))
        for shingle in shingles:
            holders[shingle].append(number)
    counts = [0] * len(candidates)
    for position, message in enumerate(messages):
        found: defaultdict[int, int] = defaultdict(int)
        for start, end in message.answered_quotes:
            words = _quoted_words(message.body[start:end])[-_NEAR:]
            for shingle in set(_shingles(words)):
                for number in holders.get(shingle, ())[:_SHINGLE]:
                    found[number] += 1
        for number, shared in found.items():
            if candidates[number].message < position and 2 * shared >= sizes[number]:
                counts[number] += 1
    return counts


def _quoted_words(quote: str) -> list[str]:
    """Return the words of the lines that are quoted once, not of quotes in the quote."""
    words: list[str] = []
    for line in quote.split("\n"):
        mark = _MARK.match(line)
        if mark and not _MARK.match(line, mark.end()):
            words += _WORD.findall(line[mark.end() :].lower())
    return words


def _shingles(words: Sequence[str]) -> list[tuple[str, ...]]:
    size = min(_SHINGLE, len(words))
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)] if size else []
