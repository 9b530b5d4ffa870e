"""Count who reacted to a sentence: who quoted it and wrote an answer right below."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from mail_assets.summaries.candidates import Candidate
from mail_assets.summaries.message_text import MessageText

_SHINGLE = 5  # words in a row that tell a sentence from another, however lines were wrapped
_MOST_HOLDERS = 8  # sentences with the same words that are looked at: bounds what repeats
_NEAR = 60  # words of the quote that stand nearest to the answer
_MARK = re.compile(r"[ \t]{0,4}[A-Za-z]{0,4}[>|:][ \t]?")
_WORD = re.compile(r"\w+")

Shingle = tuple[str, ...]


def count_reactions(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> list[int]:
    """Return for each candidate the number of later messages that answer it.

    A message answers a sentence if it quotes half of it at least, near text of its own.
    """
    quoted = [_quoted_shingles(message) for message in messages]
    known = frozenset[Shingle]().union(*quoted)
    last = max((position for position, shingles in enumerate(quoted) if shingles), default=0)
    answerable = [one for one in candidates if one.message < last]  # in order: the first of them
    sizes: list[int] = []
    holders: defaultdict[Shingle, list[int]] = defaultdict(list)
    for number, candidate in enumerate(answerable):
        shingles = _shingles(_WORD.findall(candidate.text.lower()))
        sizes.append(len(shingles))
        for shingle in shingles & known:
            if len(holders[shingle]) < _MOST_HOLDERS:
                holders[shingle].append(number)
    held = set(holders)
    counts = [0] * len(candidates)
    for position, shingles in enumerate(quoted):
        shared = Counter(number for each in shingles & held for number in holders[each])
        for number, found in shared.items():
            if candidates[number].message < position and 2 * found >= sizes[number]:
                counts[number] += 1
    return counts


def _quoted_shingles(message: MessageText) -> set[Shingle]:
    """Return the shingles of the quotes that a message answers."""
    found: set[Shingle] = set()
    for start, end in message.answered_quotes:
        found |= _shingles(_last_quoted_words(message.body[start:end]))
    return found


def _last_quoted_words(quote: str) -> list[str]:
    """Return the last _NEAR words of the lines that are quoted once, not of quotes in the quote."""
    words: list[str] = []
    for line in reversed(quote.split("\n")):
        mark = _MARK.match(line)
        if mark and not _MARK.match(line, mark.end()):
            words = _WORD.findall(line[mark.end() :].lower()) + words
            if len(words) >= _NEAR:
                break
    return words[-_NEAR:]


def _shingles(words: Sequence[str]) -> set[Shingle]:
    size = min(_SHINGLE, len(words))
    return set(zip(*(words[i:] for i in range(size)), strict=False))
