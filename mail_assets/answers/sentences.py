"""Choose the sentences of excerpts that may be in an answer, and score them for a question.

    score = words + score of the message / best score + similarity / 2

"words" is the weighted share of the question's words, as in search; a word that only the subject
has counts a third. The similarity is the encoder's, spread over 0 to 1.

Sentences that say nothing alone are left out: questions, introductions of a following text,
sentences with a missing beginning or end, lists of changed files, and sentences with a number in
brackets, which would read as a citation. Code, output and greetings are no sentences.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.excerpts import Excerpt
from mail_assets.text.letters import count_words
from mail_assets.text.sentences import find_item_text, find_sentences
from mail_assets.text.untrusted import strip_invisible

#: Fewest words of a sentence that says something alone, and most that people read.
MIN_WORDS, MAX_WORDS = 5, 60
#: Most sentences that are scored, those of the best hits.
MAX_SENTENCES = 400
#: Weight of a word of the question that is in the subject and not in the sentence.
SUBJECT_SHARE = 1 / 3
#: Weight of the similarity, and most sentences to compute it for: the best by the other terms,
#: because the encoder takes some milliseconds for each.
SIMILARITY_SHARE, MAX_COMPARED = 0.5, 40
#: Most characters of the mark of a list item.
MAX_MARK = 40

#: Questions, also without a question mark, and sentences that say that the writer does not know.
_ASKS = re.compile(
    r"(?:[?\uff1f\u061f]|:)[\"')\u201d\u2019\uff09]?\Z|\b(?:i (?:was |am |'m )?wonder(?:ing)?|"
    r"any (?:ideas?|hints?|thoughts|comments|suggestions|pointers)\b|does any(?:one|body)|"
    r"i (?:don't|do not|cannot|can't) (?:understand|know|see (?:how|why))|"
    r"please (?:help|advise))\b",
    re.IGNORECASE,
)
#: The end of a sentence; without it, a sentence ends at a blank line, an item or the end.
_ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\W_]*\Z")
_STOPS = re.compile(r"[ \t\r]*(?:\Z|\n[ \t\r]*(?:\n|\Z))")
#: A file before its change, as in a shortlog: `man/utime.2: ffix`.
_FILE = re.compile(r"(?<!\S)[\w.-]+(?:/[\w.-]+)+: ")


class Meter(NamedTuple):
    """Measures texts against a question: the weighted share of its words, and the similarity."""

    weigh: Callable[[Sequence[str]], Sequence[float]]
    compare: Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True)
class Sentence:
    """A sentence of an excerpt, body[start:end] of its message, on one line."""

    number: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class WeighedSentence(Sentence):
    """A sentence with its score.

    `own` is its share of the question's words, `near` its similarity, each 0 to 1.
    """

    own: float
    near: float
    score: float


def weigh_sentences(excerpts: Sequence[Excerpt], meter: Meter) -> list[WeighedSentence]:
    """Return the sentences of excerpts that may be in an answer, in order, with their scores."""
    found = [one for excerpt in excerpts for one in find_telling_sentences(excerpt)]
    found = found[:MAX_SENTENCES]
    hits = {excerpt.number: excerpt.hit for excerpt in excerpts}
    best = max((hit.score for hit in hits.values()), default=0.0) or 1.0
    own = meter.weigh([one.text for one in found])
    titled = meter.weigh([f"{hits[one.number].subject}\n{one.text}" for one in found])
    scores = [
        words + SUBJECT_SHARE * (both - words) + hits[one.number].score / best
        for one, words, both in zip(found, own, titled, strict=True)
    ]
    places = sorted(range(len(found)), key=lambda place: -scores[place])[:MAX_COMPARED]
    compared = _spread(meter.compare([found[place].text for place in places]))
    near = dict(zip(places, compared, strict=True))
    return [
        WeighedSentence(
            **asdict(one),
            own=own[place],
            near=near.get(place, 0.0),
            score=scores[place] + SIMILARITY_SHARE * near.get(place, 0.0),
        )
        for place, one in enumerate(found)
    ]


def _spread(values: Sequence[float]) -> list[float]:
    """Scale values to 0 to 1: encoders differ in the range of their similarities."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def find_telling_sentences(excerpt: Excerpt) -> Iterator[Sentence]:
    """Yield the sentences of an excerpt that say something alone."""
    for start, piece in excerpt.pieces():
        for span in find_sentences(piece):
            text = " ".join(strip_invisible(piece[span.start : span.end]).split())
            is_rest = span.start == 0 and text[:1].islower()
            if not is_rest and _is_whole(text, piece, span.end) and _tells(text):
                yield Sentence(excerpt.number, start + span.start, start + span.end, text)


def _is_whole(text: str, piece: str, end: int) -> bool:
    """Return whether a sentence does not continue after its end in lines that are no prose."""
    if _ENDS.search(text) or _STOPS.match(piece, end):
        return True
    line = piece.find("\n", end) + 1
    return find_item_text(piece[line : line + MAX_MARK]) > 0


def _tells(text: str) -> bool:
    if not MIN_WORDS <= count_words(text) <= MAX_WORDS or _ASKS.search(text):
        return False
    if len(_FILE.findall(text)) > 1:
        return False
    citations = CitationFilter(())
    citations.feed(text)
    citations.finish()
    return not citations.dropped
