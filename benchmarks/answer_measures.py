"""The measures of answers, whoever made them.

answered    of the questions that have an answer in the archive, the share that was answered
refused     of those that have none, the share that was refused
supported   of what the answers state, the share that the cited texts say: every number of it, and
            most of its longer words (a check of words, not of meaning)
relevant    of the messages that an answer cites, the share judged relevant; mean of the answers
found       of the questions that have an answer, the share whose answer cites a relevant message
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

#: The share of a statement's longer words that the cited texts must have.
MIN_WORDS = 0.6
#: Letters of a word that says something, and those of it that are compared: endings differ.
LONGER, COMPARED = 4, 5

_CITATION = re.compile(r"(?:\s{0,9}\[(?:\d++(?:, )?)++\])++")
_NUMBER = re.compile(r"\d++")
_WORD = re.compile(r"[^\W\d_]++")


class Statement(NamedTuple):
    """What an answer says up to a citation, and the numbers that it cites, none at its end."""

    text: str
    numbers: tuple[int, ...]


class JudgedAnswer(NamedTuple):
    """An answer with what it is measured by.

    `relevant` are the ids of the messages that answer, none where the archive does not.
    `statements` and `supported` count what it states; `cited` are ids of messages.
    """

    query_id: str
    relevant: frozenset[str]
    answered: bool
    statements: int
    supported: int
    cited: tuple[str, ...]


def split_statements(text: str) -> Iterator[Statement]:
    """Yield what a checked answer states, whose citations are written [n, m]."""
    at = 0
    for citation in _CITATION.finditer(text):
        numbers = tuple(int(number) for number in _NUMBER.findall(citation[0]))
        yield Statement(text[at : citation.start()].lstrip(" \n.,;"), numbers)
        at = citation.end()
    if _WORD.search(text, at):
        yield Statement(text[at:].lstrip(" \n.,;"), ())


def is_supported(statement: Statement, texts: Mapping[int, str]) -> bool:
    """Tell whether the texts that a statement cites have its numbers and most of its words."""
    cited = " ".join(texts[number] for number in statement.numbers)
    if {*_NUMBER.findall(statement.text)} - {*_NUMBER.findall(cited)}:
        return False
    words = _longer_words(statement.text)
    return bool(cited) and len(words & _longer_words(cited)) >= MIN_WORDS * len(words)


def measure_answers(answers: Sequence[JudgedAnswer]) -> dict[str, float]:
    """Return the measures by their names, those without anything to measure left out."""
    known = [one for one in answers if one.relevant]
    unknown = [one for one in answers if not one.relevant]
    given = [one for one in known if one.answered and one.cited]
    shares: dict[str, list[float]] = {
        "answered": [one.answered for one in known],
        "refused": [not one.answered for one in unknown],
        "relevant": [len(one.relevant & {*one.cited}) / len({*one.cited}) for one in given],
        "found": [one.answered and not one.relevant.isdisjoint(one.cited) for one in known],
    }
    measures = {name: sum(values) / len(values) for name, values in shares.items() if values}
    if statements := sum(one.statements for one in answers):
        measures["supported"] = sum(one.supported for one in answers) / statements
    return {name: round(value, 4) for name, value in measures.items()}


def _longer_words(text: str) -> set[str]:
    return {word[:COMPARED] for word in _WORD.findall(text.lower()) if len(word) >= LONGER}
