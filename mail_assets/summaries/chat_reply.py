"""Read a chat model's reply, and keep the sentences that the messages they cite support.

A sentence is kept where each of its numbers, names, identifiers and quotations stands in a message
that it cites, and where a sentence of such a message shares its words: that one is its place. What
the words say together cannot be checked here; a reader can, by the place.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.summary import Part, Sentence
from mail_assets.text.sentences import find_sentences
from mail_assets.text.untrusted import strip_invisible

#: Characters of a sentence: more is none.
MOST_CHARACTERS = 600
#: Of the longer words of a sentence this share must stand in the messages that it cites.
LEAST_SHARED = 0.4

_PARTS = {str(part): part for part in get_args(Part)}
_LINE = re.compile(r"[-*• ]{0,4}(\w{1,12})\*{0,2}: ?(.+)")
_CITATION = re.compile(r" ?\[(\d{1,4}(?:, ?\d{1,4}){0,20})\]")
_QUOTATION = re.compile(r"[\"“`]([^\"“”`]{2,300})[\"”`]")
_WORD = re.compile(r"\w{4,}")
_AROUND = "\"'“”‘’`.,:;!?()[]{}<>*_"


class CheckedReply(NamedTuple):
    """The sentences that are supported, and how many lines were left out."""

    sentences: tuple[Sentence, ...]
    unsupported: int


def check_reply(reply: str, messages: Sequence[MessageText]) -> CheckedReply:
    """Return what a reply says of messages, which it cites by their numbers from 1."""
    lines = [line.strip() for line in strip_invisible(reply).split("\n") if line.strip()]
    found = [_read_line(line, messages) for line in lines]
    sentences = tuple(sentence for sentence in found if sentence)
    return CheckedReply(sentences, len(lines) - len(sentences))


def _read_line(line: str, messages: Sequence[MessageText]) -> Sentence | None:
    """Return the sentence of a line, None where it is none or is not supported."""
    match = _LINE.fullmatch(line[: 2 * MOST_CHARACTERS])
    part = _PARTS.get(match[1].lower()) if match else None
    if not match or not part:
        return None
    numbers = [int(x) for cited in _CITATION.findall(match[2]) for x in cited.split(",")]
    cited = [messages[x - 1] for x in dict.fromkeys(numbers) if 1 <= x <= len(messages)]
    text = _CITATION.sub("", match[2]).strip(" *")
    if not cited or len(text) > MOST_CHARACTERS or not _states_facts(text, cited, messages):
        return None
    return _place(text, part, cited)


def _states_facts(text: str, cited: Sequence[MessageText], messages: Sequence[MessageText]) -> bool:
    """Tell whether what can be looked up of a sentence stands in the messages that it cites."""
    evidence = _fold("\n".join(f"{x.author} {x.subject} {x.body}" for x in cited))
    quotations = map(_fold, _QUOTATION.findall(text))
    people = {word for x in messages for word in _fold(x.author).split()}
    facts = (_fold(fact) for fact in _find_facts(text, people))
    return all(quotation in evidence for quotation in quotations) and all(
        # a number is no part of another: "2" does not stand in "4.2"
        re.search(rf"(?<!\w)(?<!\d[.,:-]){re.escape(fact)}(?!\w|[.,:-]\d)", evidence)
        for fact in facts
    )


def _find_facts(text: str, people: set[str]) -> Iterator[str]:
    """Yield the numbers, names and identifiers of a sentence.

    Its first word is written with a capital letter whatever it is: it counts as the name of a
    person who takes part.
    """
    for number, word in enumerate(text.split()):
        bare = re.sub(r"['’]s$", "", word.strip(_AROUND)).strip(_AROUND)
        plain = re.sub(r"[-'’]", "", bare)
        named = bare[:1].isupper() and bare != "I" and (number > 0 or bare.lower() in people)
        if bare and (named or not plain.isalpha() or bare[1:] != bare[1:].lower()):
            yield bare


def _place(text: str, part: Part, cited: Sequence[MessageText]) -> Sentence | None:
    """Return a sentence at the place that shares most of its words; None where too few do."""
    words = {*_WORD.findall(text.lower())}
    shared = {x.message_id: words & {*_WORD.findall(x.body.lower())} for x in cited}
    if not words or len(set().union(*shared.values())) < LEAST_SHARED * len(words):
        return None
    places = [
        (len(words & {*_WORD.findall(message.body[start:end].lower())}), message, start, end)
        for message in cited
        for first, last in message.new_text
        for start, end in find_sentences(message.body, first, last)
    ]
    most, message, start, end = max(places, key=lambda place: place[0], default=(0, cited[0], 0, 0))
    if not most:
        return None
    also = (x for x, some in shared.items() if some and x != message.message_id)
    return Sentence(message.message_id, start, end, text, part, tuple(also))


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
