"""Summarize a thread by its own sentences, without a model.

The best sentence of the opening message states the question or proposal; the latest sentence that
states a decision is the outcome. Sentences with the highest scores fill the rest; a sentence that
repeats a chosen one has a lower score (maximal marginal relevance: Carbonell and Goldstein 1998).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from mail_assets.mail.body.signatures import is_closing
from mail_assets.mail.message.subjects import has_prefix
from mail_assets.summaries.acts import is_decision
from mail_assets.summaries.decisions import DECISIONS_VERSION, find_statements
from mail_assets.summaries.summary import (
    NOTHING,
    MessageText,
    Part,
    Sentence,
    Summary,
    Usage,
    describe_thread,
)
from mail_assets.text.letters import count_words
from mail_assets.text.sentences import find_sentences

#: Part of the fingerprint: raise it when summaries change.
EXTRACTIVE_VERSION = "10"
FINGERPRINT = f"extractive-{EXTRACTIVE_VERSION} decisions-{DECISIONS_VERSION}"

MAX_SENTENCES = 10
_SAME = 0.9  # cosine from which a sentence repeats another

_MIN_WORDS, _MAX_WORDS = 4, 70
_MAX_SENTENCES = 200  # per message
_COURTESY = re.compile(
    r"(?i)(?:hi|hello|hey|dear|good (?:morning|day|evening)|thanks?|thank you|thx|many thanks|"
    r"cheers|sorry|welcome|best|kind|regards|have a|please (?:find|see) attached)\b[^.!?]{0,60}"
    r"[.!?,]*\Z"
)
#: Addresses of programs that test patches or report their state.
_ROBOT = re.compile(
    r"(?i)(?:[^@]{0,60}[._+-])?(?:(?:build|depend[ae]|sys|syz)?bot\d?|robot|lkp|jenkins|patchwork)"
    r"(?:[+-][^@]{0,60})?@"
)
_AUTOMATED = re.compile(
    r"(?i)[\s\W]{0,20}this is (?:an? )?auto\w{1,20}(?:[ -]generated)? (?:e-?mail|message|report)\b"
)

_FULL_LENGTH = 20  # words; a longer sentence gets no higher score for its length
_MAX_SIGNS = 0.15  # of the characters of a whole sentence, digits too
_SIGN = re.compile(r"[^\w\s]|[\d_]")
_ASCII_NO_SIGNS = bytes(code for code in range(128) if not _SIGN.match(chr(code)))
_END = re.compile(r"[.!?…。！？:;][\"'”’»)\]>*_」』）]*$")

_SHINGLE = 5  # words in a row that identify a sentence, however lines are wrapped
_MOST_HOLDERS = 8  # sentences with the same words that are compared
_NEAR = 60  # words of a quote that are nearest to the answer
_MARK = re.compile(r"[ \t]{0,4}[A-Za-z]{0,4}[>|:][ \t]?")
_WORD = re.compile(r"\w+")

Shingle = tuple[str, ...]

Vector = dict[str, float]


@dataclass(frozen=True)
class Weights:
    """Weight of each signal; 0 switches it off.

    The numbers are rounded, and fitted to the half of the marked threads that is not held out.
    `python -m benchmarks.summaries` prints the gain of each signal.
    """

    position: float = 1.0  # 1 for the first sentence of a message, 1/2 for the second, 1/3 ...
    length: float = 1.0  # 1 for a sentence of _FULL_LENGTH words
    centrality: float = 0.5  # 1 for the sentence with most of what people share
    reactions: float = 0.25  # 1 for the first message that answers it, 1 for each doubling
    fragment: float = -0.5  # without a mark at its end, or full of signs and digits


WEIGHTS = Weights()


@dataclass(frozen=True)
class Candidate:
    """A sentence: characters `start` to `end` of the body of the thread's message number `message`.

    `index` counts the candidates of a message from 0.
    """

    message: int
    index: int
    start: int
    end: int
    text: str
    terms: tuple[str, ...]


def summarize(messages: Sequence[MessageText], weights: Weights = WEIGHTS) -> Summary:
    """Summarize a thread; `messages` are its archived messages in the thread's order."""
    if not messages:
        raise ValueError("a thread without an archived message cannot be summarized")
    candidates = find_candidates(messages)
    opening = _find_opening(messages, candidates)
    parts = [_part_of(one, opening, messages[one.message].joined) for one in candidates]
    chosen = _choose(
        _weigh_candidates(messages, candidates, weights),
        weigh_terms([one.terms for one in candidates]),
        [
            [i for i, one in enumerate(candidates) if one.message == opening],
            _find_outcome(messages, candidates, parts),
        ],
        count_sentences(len(messages)),
    )
    sentences = (_sentence(messages, candidates[i], parts[i]) for i in sorted(chosen))
    return describe_thread(messages, sentences, find_statements(messages))


def count_sentences(messages: int) -> int:
    """Return the largest number of sentences for a thread of `messages` messages."""
    return min(2 + math.ceil(math.log2(messages)), MAX_SENTENCES)


def _find_opening(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> int:
    # The message that asks or proposes: the first one. If that has no whole sentence, as a bare
    # patch, the next of the same author before anybody else writes.
    for one in candidates:
        if messages[one.message].author != messages[0].author:
            break
        if not _is_fragment(one.text):
            return one.message
    return 0


def _part_of(one: Candidate, opening: int, joined: bool) -> Part:
    if one.message <= opening:
        return "question"
    return "outcome" if is_decision(one.text) and not joined else "discussion"


def _find_outcome(
    messages: Sequence[MessageText], candidates: Sequence[Candidate], parts: Sequence[Part]
) -> list[int]:
    # The candidate that states a decision last, the first of its message; or none.
    stated = [i for i, part in enumerate(parts) if part == "outcome"]
    return sorted(
        stated, key=lambda i: (messages[candidates[i].message].sent_at, -candidates[i].index)
    )[-1:]


def _choose(
    worth: Sequence[float],
    vectors: Sequence[Vector],
    required: Sequence[Collection[int]],
    size: int,
) -> list[int]:
    # The best of each required group, then the best of all; repetition lowers the worth.
    left = dict(enumerate(worth))
    holders = _group_by_term(vectors)
    chosen: list[int] = []
    for group in (*required, *[left] * size):
        pool = [i for i in group if i in left]
        if pool and len(chosen) < size:
            best = max(pool, key=lambda i: (left[i], -i))
            chosen.append(best)
            del left[best]
            sharing = {i for term in vectors[best] for i in holders[term]}
            for i in sharing & left.keys():
                repeated = _measure_similarity(vectors[i], vectors[best])
                if repeated < _SAME:
                    left[i] = min(left[i], worth[i] - repeated)
                else:
                    del left[i]
    return chosen


def _sentence(messages: Sequence[MessageText], one: Candidate, part: Part) -> Sentence:
    return Sentence(messages[one.message].message_id, one.start, one.end, one.text, part)


def find_candidates(messages: Sequence[MessageText]) -> list[Candidate]:
    """Return the sentences that a summary may take, in the thread's order.

    They are new text without code, greetings and thanks, and have at least _MIN_WORDS words or a
    decision. From answers of programs only decisions are taken.
    """
    return [
        candidate
        for number, message in enumerate(messages)
        for candidate in _candidates_of(number, message)
    ]


def _candidates_of(number: int, message: MessageText) -> Iterator[Candidate]:
    body, index = message.body, 0
    is_telling = is_decision if _is_by_program(number, message) else _is_telling
    for first, last in message.new_text:
        for start, end in find_sentences(body, first, last):
            text = body[start:end]
            if index < _MAX_SENTENCES and is_telling(text):
                yield Candidate(number, index, start, end, text, tuple(_find_terms(text)))
                index += 1


def _is_by_program(number: int, message: MessageText) -> bool:
    if not number and not has_prefix(message.subject):
        return False
    return bool(_ROBOT.match(message.sender) or _AUTOMATED.match(message.body))


def _is_telling(text: str) -> bool:
    words = count_words(text)
    if not _MIN_WORDS <= words <= _MAX_WORDS:
        return words < _MIN_WORDS and is_decision(text)
    return not (_COURTESY.match(text) or is_closing(text))


def _weigh_candidates(
    messages: Sequence[MessageText], candidates: Sequence[Candidate], weights: Weights = WEIGHTS
) -> list[float]:
    """Return the score of each candidate: a weighted sum of signals from 0 to about 1."""
    signals = zip(
        candidates,
        measure_centrality(messages, candidates),
        count_reactions(messages, candidates),
        strict=True,
    )
    return [
        weights.position / (1 + one.index)
        + weights.length * min(len(_WORD.findall(one.text)) / _FULL_LENGTH, 1.0)
        + weights.centrality * central
        + weights.reactions * math.log2(1 + reactions)
        + weights.fragment * _is_fragment(one.text)
        for one, central, reactions in signals
    ]


def measure_centrality(
    messages: Sequence[MessageText], candidates: Sequence[Candidate]
) -> list[float]:
    """Return the share of common terms in each candidate, relative to the highest (1).

    The weight of a term is the logarithm of the number of people who use it. A term that only one
    person uses, as in the versions of a patch, has no weight.
    """
    users: defaultdict[str, set[str]] = defaultdict(set)
    for one in candidates:
        for term in one.terms:
            users[term].add(messages[one.message].author)
    shared = {term: math.log(len(found)) for term, found in users.items()}
    values = [sum(shared[term] for term in sorted(set(one.terms))) for one in candidates]
    most = max(values, default=0.0)
    return [value / most for value in values] if most else values


def _is_fragment(text: str) -> bool:
    """Return whether a text is a heading, an item or code, and not a whole sentence."""
    if not _END.search(text[-12:]):
        return True
    return _count_signs(text) > _MAX_SIGNS * len(text)


def _count_signs(text: str) -> int:
    if text.isascii():  # takes a tenth of the time
        return len(text.encode().translate(None, _ASCII_NO_SIGNS))
    return len(_SIGN.findall(text))


def count_reactions(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> list[int]:
    """Return for each candidate the number of later messages that answer it.

    A message answers a sentence if it quotes at least half of it directly above its own text.
    """
    quoted = [
        {
            shingle
            for start, end in message.answered_quotes
            for shingle in _shingles(_last_quoted_words(message.body[start:end]))
        }
        for message in messages
    ]
    known = set[Shingle]().union(*quoted)
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


def _last_quoted_words(quote: str) -> list[str]:
    """Return the last _NEAR words of a quote, without quotes inside it."""
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


def weigh_terms(sentences: Sequence[Sequence[str]]) -> list[Vector]:
    """Return a tf-idf vector of length 1 for each sentence; {} for a sentence without terms."""
    frequency = Counter(chain.from_iterable(map(set, sentences)))
    rarity = {term: math.log(1 + len(sentences) / count) for term, count in frequency.items()}
    vectors = []
    for terms in sentences:
        weights = {term: terms.count(term) * rarity[term] for term in terms}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        vectors.append({term: weight / length for term, weight in weights.items()})
    return vectors


def _group_by_term(vectors: Sequence[Vector]) -> Mapping[str, Sequence[int]]:
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, vector in enumerate(vectors):
        for term in vector:
            holders[term].append(number)
    return holders


def _measure_similarity(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors of length 1."""
    if len(a) > len(b):
        a, b = b, a
    return sum(weight * b.get(term, 0.0) for term, weight in a.items())


_TERM = re.compile(r"[^\W_][\w'’]{1,40}")
_KNOWN_WORDS = 1 << 14  # words whose terms are cached
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2}")

_COMMON_WORDS = """
    a about above after again against all also although always am an and any anyone anything are
    as ask at away back be because been before being below better between both but by came can
    cannot come could course did didn do does doesn doing don done down each either else enough
    etc even ever every few first for from further get gets getting give given go goes going good
    got had has hasn have haven having he hello her here hi him his how however i if in instead
    into is isn it its itself just keep kind know least less let like look looks lot made make
    makes many may maybe me mean might mine more most much must my myself need never new no nor
    not nothing now of off often oh ok on once one only or other others our out over own perhaps
    please possible probably put quite rather really right said same say says see seem seems seen
    shall she should since so some someone something somewhat sort still such sure take than thank
    thanks that the their them then there these they thing things think this those though thought
    through thus to too true try two under until up upon us use used using very via want wants was
    wasn way we well went were what when where whether which while who whole whom why will with
    within without won would wouldn wrote yes yet you your yours
    """
#: English words without a topic; other languages rely on the frequency of terms alone.
COMMON = frozenset(_COMMON_WORDS.split())


def _find_terms(text: str) -> list[str]:
    """Return the terms of a text in order: words in lower case, pairs of ideographs."""
    terms = [term for term in map(_find_term, _TERM.findall(text)) if term]
    return terms if text.isascii() else terms + _IDEOGRAPHS.findall(text)


@lru_cache(maxsize=_KNOWN_WORDS)
def _find_term(word: str) -> str:
    # "" for a word without a topic
    plain = word.lower().replace("’", "'").removesuffix("'s")
    return "" if plain in COMMON or "'" in plain else _stem(plain)


def _stem(word: str) -> str:
    # Remove the ending of an English plural or verb; the rest need not be a word.
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


@dataclass(frozen=True)
class ExtractiveMaker:
    """Makes summaries from the thread's own sentences."""

    fingerprint: str = FINGERPRINT
    verbatim: bool = True
    portion: int = 4_000_000
    stateless: bool = True
    usage: Usage = NOTHING

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        """Return the summary of the archived messages of a thread."""
        return summarize(messages)
