"""The sentences of excerpts that may stand in an answer, and how much of the question each has.

Left out is what says nothing by itself: questions, what introduces something that follows, the end
of a sentence whose beginning was cut off, and what refers by a number in brackets, which would read
as a citation. Excerpts are new text; what of it is code, output or a greeting is no sentence.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.excerpts import Excerpt
from mail_assets.answers.prompt import strip_invisible
from mail_assets.text.sentences import find_sentences

#: Words of a sentence that says something by itself, and of one that people still read.
MIN_WORDS, MAX_WORDS = 5, 60
#: Sentences that are looked at, those of the best hits.
MAX_SENTENCES = 400
#: What a word of the question weighs that stands in the subject and not in the sentence.
SUBJECT_SHARE = 1 / 3

#: Who asks without a question mark, or says that he does not know.
_ASKS = re.compile(
    r"(?:[?\uff1f\u061f]|:)[\"')\u201d\u2019\uff09]?\Z|\b(?:i (?:was |am |'m )?wonder(?:ing)?|"
    r"any (?:ideas?|hints?|thoughts|comments|suggestions|pointers)\b|does any(?:one|body)|"
    r"i (?:don't|do not|cannot|can't) (?:understand|know|see (?:how|why))|"
    r"please (?:help|advise))\b",
    re.IGNORECASE,
)

#: Returns for each text the share of the question's words, 0 to 1, by their weight.
Weigh = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True)
class WeighedSentence:
    """A sentence of an excerpt, body[start:end] of its message, on one line.

    `share` is how much of the question it has, with its message's subject, 0 to 1; `own` without.
    """

    number: int
    start: int
    end: int
    text: str
    own: float = 0.0
    share: float = 0.0


def weigh_sentences(excerpts: Sequence[Excerpt], weigh: Weigh) -> Iterator[WeighedSentence]:
    """Yield the sentences of excerpts that may stand in an answer, weighed."""
    subjects = {excerpt.number: excerpt.hit.subject for excerpt in excerpts}
    found = [one for excerpt in excerpts for one in find_telling_sentences(excerpt)]
    found = found[:MAX_SENTENCES]
    texts = [one.text for one in found]
    titled = [f"{subjects[one.number]}\n{one.text}" for one in found]
    shares = [*weigh([*texts, *titled])]
    for one, own, both in zip(found, shares[: len(found)], shares[len(found) :], strict=True):
        share = own + SUBJECT_SHARE * (both - own)
        yield WeighedSentence(one.number, one.start, one.end, one.text, own, share)


def find_telling_sentences(excerpt: Excerpt) -> Iterator[WeighedSentence]:
    """Yield the sentences of an excerpt that say something by themselves, not weighed."""
    for start, piece in excerpt.pieces():
        for span in find_sentences(piece):
            text = " ".join(strip_invisible(piece[span.start : span.end]).split())
            is_rest = span.start == 0 and text[:1].islower()
            if not is_rest and _tells(text):
                yield WeighedSentence(excerpt.number, start + span.start, start + span.end, text)


def _tells(text: str) -> bool:
    if not MIN_WORDS <= len(text.split()) <= MAX_WORDS or _ASKS.search(text):
        return False
    citations = CitationFilter(())
    citations.feed(text)
    citations.finish()
    return not citations.dropped
