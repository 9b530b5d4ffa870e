"""The sentences of a thread that a summary may take."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mail_assets.mail.body.signatures import is_closing
from mail_assets.summaries.decisions import is_decision
from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.terms import find_terms
from mail_assets.text.sentences import find_sentences
from mail_assets.text.word_count import count_words

_MIN_WORDS, _MAX_WORDS = 4, 70
_MAX_SENTENCES = 200  # of a message
_COURTESY = re.compile(
    r"(?i)(?:hi|hello|hey|dear|good (?:morning|day|evening)|thanks?|thank you|thx|many thanks|"
    r"cheers|sorry|welcome|best|kind|regards|have a|please (?:find|see) attached)\b[^.!?]{0,60}"
    r"[.!?,]*\Z"
)


@dataclass(frozen=True)
class Candidate:
    """A sentence: characters start to end of the body of the thread's message at `message`.

    index counts the candidates of a message from 0.
    """

    message: int
    index: int
    start: int
    end: int
    text: str
    terms: tuple[str, ...]


def find_candidates(messages: Sequence[MessageText]) -> list[Candidate]:
    """Return the sentences that a summary may take, in the thread's order.

    New text only, no code, no greeting, no thanks, nothing of under _MIN_WORDS words.
    """
    return [
        candidate
        for number, message in enumerate(messages)
        for candidate in _candidates_of(number, message.body, message.new_text)
    ]


def _candidates_of(number: int, body: str, spans: Sequence[tuple[int, int]]) -> Iterator[Candidate]:
    index = 0
    for first, last in spans:
        for start, end in find_sentences(body, first, last):
            text = body[start:end]
            if index < _MAX_SENTENCES and _is_telling(text):
                yield Candidate(number, index, start, end, text, tuple(find_terms(text)))
                index += 1


def _is_telling(text: str) -> bool:
    words = count_words(text)
    if not _MIN_WORDS <= words <= _MAX_WORDS:
        return words < _MIN_WORDS and is_decision(text)
    return not (_COURTESY.match(text) or is_closing(text))
