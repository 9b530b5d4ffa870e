"""Citations: a sentence in which a person links to an earlier mail, and that mail.

The question is the sentence before the link. For a footnote "[1] https://..." it is the sentence
with "[1]". Links, ids and footnote marks are removed. A link counts only if it is in the author's
own text and has the Message-ID of a mail, in a URL or between angle brackets.

Left out are links within a thread, to a mail with the same title, to another version of a patch, in
trailers, in mail of programs, and in lists of links; also sentences with fewer than LEAST_WORDS
words. The same sentence about the same mail is asked once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from benchmarks.yardstick.corpus import Mail
from mail_assets.mail.message.subjects import base_subject
from mail_assets.mail.patches.notes import find_message_id
from mail_assets.mail.patches.subjects import read_subject

LEAST_WORDS, MOST_CHARACTERS = 6, 400

_LINK = re.compile(r"https?://[^\s<>]{4,1000}|<[^\s<>@]{1,120}@[^\s<>@]{1,130}>")
_FOOTNOTE = re.compile(r"[ \t]{0,8}(\[\d{1,2}\]|\(\d{1,2}\))[ \t:]{0,8}(?=<|http)")
_MARK = re.compile(r"\[\d{1,2}\]|\(\d{1,2}\)")
_TRAILER = re.compile(r"[ \t]{0,8}(?:[A-Z][\w-]{0,40}|[a-z]{1,20}-[\w-]{1,40}):")
_SENTENCE = re.compile(r"(?<=[.!?])\s{1,8}(?=[A-Z\"'(])|\n[ \t]{0,80}\n")
#: Label of a link to another version, or to a posting as a whole.
_VERSION = re.compile(
    r"(?i)\b(?:v\d{1,3}|rfc|(?:previous|earlier|last|prior|first|next|latest|new) "
    r"(?:version|posting|series|revision|iteration|attempt|submission)|changes (?:since|from|in)|"
    r"changelog|repost|resend)\b"
)
_PROGRAM = re.compile(
    r"(?i)\b(?:bot|robot|syzbot|patchwork|noreply|no-reply|daemon|tracker)\b|lkp@"
)


class Citation(NamedTuple):
    """A question, the citing mail and the cited mail."""

    text: str
    citing: str
    cited: str


def find_citations(mails: Iterable[Mail]) -> list[Citation]:
    """Return the citations of a list, in the order of the citing mails."""
    known = {one.message_id: one for one in mails}
    once: dict[tuple[str, str], Citation] = {}
    for mail in known.values():
        if not mail.contested and not _is_program(mail):
            for one in _read(mail, known):
                once.setdefault((one.text.casefold(), one.cited), one)
    return [*once.values()]


def _is_program(mail: Mail) -> bool:
    return bool(_PROGRAM.search(f"{mail.from_name} {mail.from_email}"))


def _read(mail: Mail, known: Mapping[str, Mail]) -> Iterator[Citation]:
    text = mail.new
    links = [link for link in _LINK.finditer(text) if find_message_id(link[0]) in known]
    for number, link in enumerate(links):
        cited = known[find_message_id(link[0])]
        before = text[links[number - 1].end() : link.start()] if number else " x "
        if cited.contested or not _is_elsewhere(mail, cited) or not before.strip(" \t\n-*,"):
            continue
        sentence = _find_sentence(text, link.start())
        if sentence and not _VERSION.search(sentence):
            plain = _plain(sentence)
            if len(plain.split()) >= LEAST_WORDS:
                yield Citation(plain[:MOST_CHARACTERS], mail.message_id, cited.message_id)


def _is_elsewhere(mail: Mail, cited: Mail) -> bool:
    """Return True if the cited mail is older, with another thread and another title."""
    titles = (
        {read_subject(one.subject).title_key, base_subject(one.subject).casefold()}
        for one in (mail, cited)
    )
    return (
        cited.thread != mail.thread
        and cited.sent_at < mail.sent_at
        and not set.intersection(*titles)
    )


def _find_sentence(text: str, at: int) -> str:
    """Return the sentence that contains or precedes a link; "" for a trailer."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    if footnote := _FOOTNOTE.match(line):
        mark = text.find(footnote[1])
        return _around(text, mark) if mark < start else ""
    return "" if _TRAILER.match(line) else _around(text, at)


def _around(text: str, at: int) -> str:
    """Return the sentence at a place, with the one before it if it is too short."""
    cuts = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    place = max(i for i, cut in enumerate(cuts[:-1]) if cut <= at)
    sentence = text[cuts[place] : cuts[place + 1]]
    if place and len(_plain(sentence).split()) < LEAST_WORDS:
        return text[cuts[place - 1] : cuts[place + 1]]
    return sentence


def _plain(sentence: str) -> str:
    """Return a sentence without links, ids and footnote marks, on one line."""
    return " ".join(_MARK.sub(" ", _LINK.sub(" ", sentence)).split()).strip(" :-")
