"""Learn the footers and signatures that repeat in a month of a list, and mark them in its mail.

A block of lines that ends most mail of the month is the list's footer. A block that ends much of
one author's mail is that author's signature. A block stands at the end of the body, above a footer,
or at the end of the author's own text above a quote. Lines are kept as hashes only, never as text.

Anybody can send mail under any name with somebody else's words at the end, so that these words look
like a footer. Therefore the rules are strict:

* A footer ends a clear majority of the month's messages and of its authors, on most of its days. It
  mentions the list. It does not count in the mail of an author most of whose mail lacks it.
* A signature ends at least half of the messages under the author's name. It contains the author's
  name or begins with a rule. It never contains sentences, code or decisions.
* Neither is ever all new text of a message, nor in its first paragraph.

Learnt blocks are left out of chunks and summaries. The word index is built from the segments by the
rules alone (`read_month`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from hashlib import blake2b
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from mail_assets.mail.body.lines import (
    ATTRIBUTION,
    FOOTER,
    QUOTE,
    SIGNATURE,
    TEXT,
    is_sentence,
)
from mail_assets.mail.body.signatures import is_code_or_verdict, names_author, trim_sign_off

_MAX_FOOTER = 16  # visible lines
_MAX_SIGNATURE = 12  # visible lines
_QUOTES = frozenset((QUOTE, ATTRIBUTION))
_OWN = frozenset((TEXT, SIGNATURE, FOOTER))
_MAX_KEPT = 200  # characters of a line whose hash is cached, since endings repeat

# --- endings as hashes of lines ---

# parts that differ between messages or readers: tokens in links, numbers, addresses
_TOKEN_OR_NUMBER = r"(?<=[/?=&])[\w%+.-]{12,}+|\d+"
_VARYING = re.compile(_TOKEN_OR_NUMBER)
_VARYING_OR_ADDRESS = re.compile(rf"[^\s<>()@]{{1,80}}+@[^\s<>()@]{{1,80}}+|{_TOKEN_OR_NUMBER}")
_MAY_VARY = re.compile(r"[\d/?=&]")


class Ending(NamedTuple):
    """Hashes of the last lines of a message, the last line first; no text can be read from them.

    `tail` ends the body, above any footer that the rules know. `own` ends the author's text above a
    quote that reaches to the end. Hashes have 63 bits, for PostgreSQL's bigint. Lines that differ
    only in blanks, digits, addresses and tokens have equal hashes.
    """

    tail: tuple[int, ...] = ()
    own: tuple[int, ...] = ()


class EndingLines(NamedTuple):
    """Indexes of the lines that end a body, the last line first."""

    tail: list[int]
    own: list[int]


def find_ending_lines(lines: Sequence[str], kinds: bytearray) -> EndingLines:
    """Return the lines that may be a footer or a signature, by the kinds that the rules gave.

    They reach up to the first visible line at most.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    at = len(lines) - 1
    while at >= first and (kinds[at] == FOOTER or not lines[at].strip()):
        at -= 1
    tail, at = _lines_above(lines, kinds, at, first, _MAX_FOOTER + _MAX_SIGNATURE)
    end = at
    while at >= first and (kinds[at] in _QUOTES or not lines[at].strip()):
        at -= 1
    quotes_rest = any(_begins_quote(lines, kinds, i) for i in range(at + 1, end + 1))
    own = _lines_above(lines, kinds, at, first, _MAX_SIGNATURE)[0] if quotes_rest else []
    return EndingLines(tail, own)


def hash_ending(lines: Sequence[str], found: EndingLines) -> Ending:
    """Return the hashes of the lines of an ending."""
    return Ending(
        tuple(hash_line(lines[i]) for i in found.tail),
        tuple(hash_line(lines[i]) for i in found.own),
    )


def hash_line(line: str) -> int:
    """Return the hash of a line, independent of blanks, digits, addresses and tokens."""
    return _hash_kept(line) if len(line) <= _MAX_KEPT else _hash_kept.__wrapped__(line)


@lru_cache(maxsize=1 << 14)
def _hash_kept(line: str) -> int:
    return _number_of(_without_varying(" ".join(line.lower().split())))


def _without_varying(line: str) -> str:
    if "@" in line:
        return _VARYING_OR_ADDRESS.sub("#", line)
    return _VARYING.sub("#", line) if _MAY_VARY.search(line) else line


def _number_of(text: str) -> int:
    return (
        int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
    )


def _lines_above(
    lines: Sequence[str], kinds: bytearray, at: int, first: int, limit: int
) -> tuple[list[int], int]:
    """Return visible lines from `at` upwards up to a quote or patch, and the line above them."""
    found: list[int] = []
    while at >= first and kinds[at] in _OWN and len(found) < limit:
        if lines[at].strip():
            found.append(at)
        at -= 1
    return found, at


def _begins_quote(lines: Sequence[str], kinds: bytearray, i: int) -> bool:
    """Return whether line i is an attribution or an unmarked quote, not a marked quote."""
    return kinds[i] == ATTRIBUTION or (lines[i].strip() != "" and ">" not in lines[i][:8])


# --- learning ---

#: Minimum number of authors, of threads and of different lines above a footer; of its days.
_MIN_FOOTER, _MIN_DAYS = 5, 2
#: Standard deviations above half of a clear majority; in a small month it is nearly everybody.
#: Known footers of real lists are in 55 to 100 % of a month's mail, in most months in 90 %.
_DEVIATIONS = 2
#: Minimum number of different lines above a signature, in one author's messages.
_MIN_SIGNED = 3
#: Minimum share of an author's messages, and of their days, with the signature.
_MIN_SHARE = 1 / 2
_FACTOR = 0x9E3779B97F4A7C15  # Knuth's multiplicative hashing
_BITS = (1 << 63) - 1


class EndedMail(NamedTuple):
    """A message to learn from: author, subject without "Re:", ending, and day as a number."""

    author: str
    subject: str
    ending: Ending
    day: int = 0


class EndingMatch(NamedTuple):
    """Counts of the visible lines of an ending that are known, from the last line upwards."""

    footer: int = 0  # lines of `tail`
    signature: int = 0  # lines of `tail` above the footer
    own_signature: int = 0  # lines of `own`


@dataclass(frozen=True)
class RepeatedEndings:
    """Footers and signatures learnt from a month, as hashes; equal values mark the same lines."""

    footers: frozenset[int] = frozenset()
    signatures: frozenset[int] = frozenset()  # hashes of author and block together
    #: Hashes of author and footer, for authors most of whose mail lacks the footer. A list would
    #: add it to all their mail.
    spared: frozenset[int] = frozenset()

    def match(self, author: str, ending: Ending) -> EndingMatch:
        """Count the known lines of an ending; equal matches of a message give equal segments."""
        footer = self.count_footer(author, ending)
        signature = _count_known(author, ending.tail[footer:], self.signatures)
        own = _count_known(author, ending.own, self.signatures)
        return EndingMatch(footer, signature, own)

    def count_footer(self, author: str, ending: Ending) -> int:
        """Count the lines of a known footer at the end of an author's message."""
        lines = ending.tail[: _count_known("", ending.tail, self.footers)]
        if lines and self.spared and _with_author(author, _block_of(lines)) in self.spared:
            return 0
        return len(lines)


class _Block(NamedTuple):
    """The last lines that several messages share."""

    number: int  # hash of the block
    length: int  # lines
    places: list[int]  # indexes of the messages


def learn_endings(mails: Iterable[EndedMail]) -> RepeatedEndings:
    """Learn from all messages of a month of a list.

    Neither the order nor repeated copies of messages matter: a block is counted by the different
    lines above it. Memory: some 30 numbers per message.
    """
    known = list(mails)
    learnt = _learn_footers(known)
    return replace(learnt, signatures=_learn_signatures(known, learnt))


def _learn_footers(known: Sequence[EndedMail]) -> RepeatedEndings:
    footers: set[int] = set()
    spared: set[int] = set()
    nobody = _number_of("")
    authors, days = Counter(one.author for one in known), {one.day for one in known}
    for block in _find_repeated([(nobody, one.ending.tail) for one in known], _MIN_FOOTER):
        ended = [known[i] for i in block.places]
        if not _is_majority(len(ended), len(known)):
            continue
        signed = Counter(one.author for one in ended)
        threads = {one.subject for one in ended}
        above = {_line_above(one.ending.tail, block.length) for one in ended}
        if (
            min(len(signed), len(threads), len(above)) >= _MIN_FOOTER
            and _is_majority(len(signed), len(authors))
            and len({one.day for one in ended}) >= max(_MIN_DAYS, len(days) / 2)
        ):
            footers.add(block.number)
            seldom = (author for author, count in signed.items() if 2 * count < authors[author])
            spared.update(_with_author(author, block.number) for author in seldom)
    return RepeatedEndings(frozenset(footers), spared=frozenset(spared))


def _is_majority(count: int, whole: int) -> bool:
    """Return whether a share exceeds one half by more than chance (Wilson 1927)."""
    return 2 * count - whole >= _DEVIATIONS * sqrt(whole)


def _learn_signatures(known: Sequence[EndedMail], learnt: RepeatedEndings) -> frozenset[int]:
    by_author: defaultdict[str, list[EndedMail]] = defaultdict(list)
    for one in known:
        by_author[one.author].append(one)
    signatures: set[int] = set()
    for author, mails in by_author.items():
        if len(mails) < _MIN_SIGNED:
            continue
        number, days = _number_of(author), {one.day for one in mails}
        ends: list[tuple[int, Sequence[int]]] = []
        for one in mails:
            footer = learnt.count_footer(author, one.ending)
            ends += [(number, one.ending.tail[footer:]), (number, one.ending.own)]
        for block in _find_repeated(ends, _MIN_SIGNED):
            signed = {i // 2 for i in block.places}
            above = {_line_above(ends[i][1], block.length) for i in block.places}
            if (
                len(above) >= _MIN_SIGNED
                and len(signed) >= _MIN_SHARE * len(mails)
                and len({mails[i].day for i in signed}) >= _MIN_SHARE * len(days)
            ):
                signatures.add(block.number)
    return frozenset(signatures)


def _find_repeated(endings: Sequence[tuple[int, Sequence[int]]], minimum: int) -> Iterator[_Block]:
    """Yield the blocks that end at least `minimum` of the endings, pairs (hash of author, lines).

    Goes upwards line by line and drops the endings whose block is too rare.
    """
    alive = [(number, i) for i, (number, _) in enumerate(endings)]
    length = 0
    while alive:
        places: defaultdict[int, list[int]] = defaultdict(list)
        for number, i in alive:
            lines = endings[i][1]
            if length < len(lines):
                places[_add_line(number, lines[length])].append(i)
        length += 1
        repeated = {number: found for number, found in places.items() if len(found) >= minimum}
        yield from (_Block(number, length, found) for number, found in repeated.items())
        alive = [(number, i) for number, found in repeated.items() for i in found]


def _add_line(block: int, line: int) -> int:
    return (block ^ line) * _FACTOR & _BITS


def _block_of(lines: Iterable[int]) -> int:
    return reduce(_add_line, lines, _number_of(""))


def _with_author(author: str, block: int) -> int:
    return _add_line(_number_of(author), block)


def _line_above(lines: Sequence[int], length: int) -> int | None:
    return lines[length] if length < len(lines) else None


def _count_known(author: str, lines: Sequence[int], known: frozenset[int]) -> int:
    if not lines or not known:
        return 0
    longest, block = 0, _number_of(author)
    for length, line in enumerate(lines, 1):
        block = _add_line(block, line)
        if block in known:
            longest = length
    return longest


# --- marking ---

#: `_OF_LIST`: words of list footers. `_TELLING`: what a footer without these words contains.
_OF_LIST = re.compile(r"(?i)[-_=*~#]{5}|subscri|mailing[ -]list|listinfo|confiden|recipient")
_TELLING = re.compile(r"(?i)://|www\.|@|\b(?:list|archive)")
_FRAME = re.compile(r"[^\w\s]{8,}$")
_TRAILER = re.compile(r"[A-Z][\w-]{1,30}-by:|(?:Fixes|Closes|Link|Cc|Tested|Reported): ")


def mark_ending_lines(
    lines: Sequence[str], kinds: bytearray, match: EndingMatch, author: frozenset[str]
) -> None:
    """Set the kinds of the lines of a learnt ending; `kinds` holds those by the rules.

    `author` has the words of the author's name, from `name_words`.
    """
    found = find_ending_lines(lines, kinds)
    first = _first_paragraph_end(lines, kinds)
    footer = found.tail[: match.footer]
    signed = found.tail[match.footer : match.footer + match.signature]
    for i in trim_footer(lines, [i for i in footer if i >= first]):
        kinds[i] = FOOTER
    for block in (signed, found.own[: match.own_signature]):
        below = [i for i in block if i >= first]
        for i in trim_sign_off(lines, _below_statements(lines, below, author), author):
            kinds[i] = SIGNATURE


def _first_paragraph_end(lines: Sequence[str], kinds: bytearray) -> int:
    """Return the line after the first paragraph of text, or the number of lines without text."""
    pairs = enumerate(zip(lines, kinds, strict=True))
    i = next((i for i, (line, kind) in pairs if kind == TEXT and line.strip()), len(lines))
    while i < len(lines) and kinds[i] == TEXT and lines[i].strip():
        i += 1
    return i


def trim_footer(lines: Sequence[str], block: list[int]) -> list[int]:
    """Return a learnt footer, the last line first, without paragraphs on top that anybody writes.

    The kept part begins with a paragraph of one of two kinds: it mentions a list or has a rule; or
    it has no sentences, but a link, an address or the word "list".
    """
    kept, paragraph = 0, 0  # lines of the block to keep; line after the current paragraph
    for count, i in enumerate(block, 1):
        if i == 0 or not lines[i - 1].strip():
            text = " ".join(lines[x].strip() for x in reversed(block[paragraph:count]))
            if _OF_LIST.search(text) or (_TELLING.search(text) and not is_sentence(text)):
                kept = count
            paragraph = count
    return block[:kept]


def _below_statements(lines: Sequence[str], block: list[int], author: frozenset[str]) -> list[int]:
    """Return the part of a learnt block, the last line first, that is below all real text.

    Real text is a sentence, code, a decision ("NAK") or a trailer such as "Reviewed-by:". A
    sentence below a rule and the author's name is a motto and does not count.
    """
    cuts = [at for at, (below, above) in enumerate(pairwise(block), 1) if above < below - 1]
    kept = 0
    for start, stop in pairwise([0, *cuts, len(block)]):
        paragraph = [lines[i].strip() for i in reversed(block[start:stop])]
        frame = _frame_start(paragraph, author)
        if any(map(_TRAILER.match, paragraph)) or any(map(is_code_or_verdict, paragraph)):
            break
        if is_sentence(" ".join(paragraph[:frame])):
            kept = start + len(paragraph) - frame
            break
        kept = stop
    return block[:kept]


def _frame_start(paragraph: list[str], author: frozenset[str]) -> int:
    """Return the index of a rule above the author's name, or the number of lines without one."""
    pairs = enumerate(pairwise(paragraph))
    named = (at for at, (rule, name) in pairs if _FRAME.match(rule) and names_author(name, author))
    return next(named, len(paragraph))
