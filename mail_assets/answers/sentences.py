"""The sentences of excerpts that may stand in an answer, and how much each says of the question.

    score = words + score of the message / that of the best + similarity / 2

The words of the question weigh as in search; one that only the subject has counts a third. The
similarity is the model's, spread over 0 to 1.

Left out is what says nothing by itself: questions, what introduces something that follows, a part
of a sentence whose beginning or end was cut off, files with what was changed in each, and what
refers by a number in brackets, which would read as a citation. Excerpts are new text; what of it is
code, output or a greeting is no sentence.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from mail_assets.answers.answer import CitationFilter
from mail_assets.answers.excerpts import Excerpt
from mail_assets.text.letters import count_words
from mail_assets.text.sentences import find_item_text, find_sentences
from mail_assets.text.untrusted import strip_invisible

#: Words of a sentence that says something by itself, and of one that people still read.
MIN_WORDS, MAX_WORDS = 5, 60
#: Sentences that are looked at, those of the best hits.
MAX_SENTENCES = 400
#: What a word of the question weighs that stands in the subject and not in the sentence.
SUBJECT_SHARE = 1 / 3
#: What the similarity to the question weighs beside its words, and the sentences, the best without
#: it, of which it is computed: a model takes some milliseconds for each.
SIMILARITY_SHARE, MAX_COMPARED = 0.5, 40

#: Characters that the mark of a list's item has at most.
MAX_MARK = 40

#: Who asks without a question mark, or says that he does not know.
_ASKS = re.compile(
    r"(?:[?\uff1f\u061f]|:)[\"')\u201d\u2019\uff09]?\Z|\b(?:i (?:was |am |'m )?wonder(?:ing)?|"
    r"any (?:ideas?|hints?|thoughts|comments|suggestions|pointers)\b|does any(?:one|body)|"
    r"i (?:don't|do not|cannot|can't) (?:understand|know|see (?:how|why))|"
    r"please (?:help|advise))\b",
    re.IGNORECASE,
)


#: What a sentence ends with, and where text without it ends too: at a blank line, an item, the end.
_ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\W_]*\Z")
_STOPS = re.compile(r"[ \t\r]*(?:\Z|\n[ \t\r]*(?:\n|\Z))")
#: A file in front of what was changed in it: a shortlog has several, `man/utime.2: ffix`.
_FILE = re.compile(r"(?<!\S)[\w.-]+(?:/[\w.-]+)+: ")


class Meter(NamedTuple):
    """Measures texts against a question: the share of its words, by weight, and the similarity."""

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
    """A sentence with its score, and what it has of the question without its message.

    `own` is the share of the question's words, `near` the similarity, each 0 to 1.
    """

    own: float
    near: float
    score: float


def weigh_sentences(excerpts: Sequence[Excerpt], meter: Meter) -> list[WeighedSentence]:
    """Return the sentences of excerpts that may stand in an answer, in their order, weighed."""
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
    """Return values on 0 to 1: models differ in how near everything is."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def find_telling_sentences(excerpt: Excerpt) -> Iterator[Sentence]:
    """Yield the sentences of an excerpt that say something by themselves."""
    for start, piece in excerpt.pieces():
        for span in find_sentences(piece):
            text = " ".join(strip_invisible(piece[span.start : span.end]).split())
            is_rest = span.start == 0 and text[:1].islower()
            if not is_rest and _is_whole(text, piece, span.end) and _tells(text):
                yield Sentence(excerpt.number, start + span.start, start + span.end, text)


def _is_whole(text: str, piece: str, end: int) -> bool:
    """Say whether a sentence does not go on behind its end: in lines that look like no prose."""
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
