"""An answer to a question about the archive, and the events in which it arrives.

[citations] Check the citations of an answer while it streams: only those of existing excerpts are shown.

A citation is brackets with numbers, and with nothing else but separators, labels and, after a
dagger, what some models add to a source:

    citation  = opening (number | separator | label)* [dagger text] closing
    separator = white space , ; & ^ # and a dash, which makes a range of two numbers

It is shown as [n, m]; numbers without an excerpt are removed and counted. Round brackets and "#"
have other uses too. There, these are text: a number with more digits than a citation needs, as in
"(2024)" and "[#17254]", brackets right after a word, as in "open(2)", and the items "(1) ..., (2)
...". Brackets in `code` on one line and in fenced blocks are code: `argv[1]` stays unchanged.

What might become a citation is held back until it is one or cannot be.

[turn] An earlier question of a conversation, and what was answered.
"""

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from mail_assets.answers.excerpts import Excerpt, Spans
from mail_assets.text.untrusted import strip_invisible


@dataclass(frozen=True)
class Citation:
    """A message that is cited by a number; spans are (start, end) in characters of its body."""

    number: int
    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    spans: Spans


@dataclass(frozen=True)
class Sources:
    """The first event: what may be cited, the excerpts of the mail that was found."""

    question: str
    maker: str
    excerpts: tuple[Citation, ...]


@dataclass(frozen=True)
class Text:
    """A piece of the answer, checked: the pieces of all such events are its text."""

    text: str


@dataclass(frozen=True)
class Answer:
    """The last event: the whole answer, and the messages that it cites.

    `maker` is the chat model, or "extractive". `sufficient`: the archive answers the question, as
    the maker says; without excerpts it is not asked. `complete`: the answer did not break off; else
    `fault` says why it did. `dropped` counts citations of what was not given to the maker, which
    are not in `text`. The spans of a citation are the excerpt's, those of an extractive answer its
    sentences, in the order in which the text has them.
    """

    question: str
    maker: str
    text: str
    sufficient: bool
    complete: bool
    fault: str
    citations: tuple[Citation, ...]
    dropped: int
    excerpts: int
    took_ms: float

    def as_json(self) -> dict[str, Any]:
        """Return the answer as what json.dumps takes."""
        return asdict(self)


Event: TypeAlias = Sources | Text | Answer


def cite(excerpt: Excerpt, spans: Spans | None = None) -> Citation:
    """Return the citation of an excerpt, or of some characters of it."""
    hit = excerpt.hit
    return Citation(
        number=excerpt.number,
        message_id=hit.message_id,
        lists=hit.lists,
        month=hit.month,
        subject=hit.subject,
        from_name=hit.from_name,
        from_email=hit.from_email,
        sent_at=hit.sent_at,
        spans=excerpt.spans if spans is None else spans,
    )


_ROUND = "(\uff08"
_OPENING, _CLOSING = rf"\[\u3010\u3014\uff3b{_ROUND}", r"\]\u3011\u3015\uff3d)\uff09"
_LABELS = (
    *("excerpt", "source", "reference", "ref", "citation", "message", "and"),
    *("extracto", "fuente", "mensaje", "extrait", "auszug", "quelle", "und"),
)
_LABEL = rf"(?:{'|'.join(_LABELS)})s?(?![^\W\d_])[.:]?"
_INNER = rf"(?:[\d\s,;&^#\u2013-]|{_LABEL})*+"
_DAGGER = rf"\u2020[^`\n{_OPENING}{_CLOSING}]*+"
_CITATION = re.compile(rf"( *)([{_OPENING}])({_INNER})(?:{_DAGGER})?[{_CLOSING}]", re.IGNORECASE)
#: The beginning of a citation, up to the end of what has come, and the beginning of a label.
_BEGUN = re.compile(rf" *(?:[{_OPENING}]{_INNER}(?:{_DAGGER}|([^\W\d_]*)))?", re.IGNORECASE)
#: After an opening bracket and this, a number would read as a citation after all: "[[9]7]".
_OPEN = re.compile(rf"{_INNER}([^\W\d_]*)", re.IGNORECASE)
#: A number, or a range of them.
_NUMBERS = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
_SPECIAL = re.compile(rf"(?<! ) *+[{_OPENING}]|`|(?<! ) ++\Z")
_LAST_OPENING = re.compile(rf"[{_OPENING}](?=[^{_OPENING}]*\Z)")
_CODE = re.compile(r"`[^`\n]*`")
_FENCE = "```"
#: After one of these, or at the beginning, "(1)" is the first of some items.
_BEFORE_ITEMS = "\n:;,"
MAX_DIGITS = 2  # of a number in round brackets, where no excerpt has more
MAX_HELD = 200  # characters: longer is neither a citation nor a piece of code worth waiting for


class CitationFilter:
    """Passes on an answer without its wrong citations.

    `cited` are the numbers in the order of their first use; `dropped` counts those removed. Of what
    was shown only the end is kept: with all of it each piece costs as much as the whole answer.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.cited: list[int] = []
        self.dropped = 0
        self._numbers = numbers
        self._held = self._shown = ""
        self._fenced = False
        self._items = 0

    def feed(self, text: str) -> str:
        """Take a piece of the answer; return what can be shown now."""
        self._held += strip_invisible(text)
        return self._release(final=False)

    def finish(self) -> str:
        """Return what was held back, at the end of the answer."""
        return self._release(final=True)

    def _release(self, final: bool) -> str:
        shown: list[str] = []
        while self._held:
            size, text = self._next(final)
            if not size:
                break
            shown.append(text)
            self._shown = (self._shown + text)[-MAX_HELD:]
            self._held = self._held[size:]
        return "".join(shown)

    def _next(self, final: bool) -> tuple[int, str]:
        """Return how many characters of what is held are decided, and what is shown for them."""
        held = self._held
        if self._fenced:
            return self._in_fence(final)
        special = _SPECIAL.search(held)
        if special is None:
            return len(held), held
        if special.start():
            return special.start(), held[: special.start()]
        wait = not final and len(held) < MAX_HELD
        if held.startswith("`"):
            return self._at_code(wait)
        if citation := _CITATION.match(held):
            return citation.end(), self._check(citation)
        if wait and (begun := _BEGUN.fullmatch(held)) and _may_be_label(begun[1] or ""):
            return 0, ""
        return special.end(), held[: special.end()]

    def _at_code(self, wait: bool) -> tuple[int, str]:
        held = self._held
        if held.startswith(_FENCE):
            self._fenced = True
            return len(_FENCE), _FENCE
        if wait and _FENCE.startswith(held):
            return 0, ""
        if code := _CODE.match(held):
            return code.end(), code[0]
        if wait and "\n" not in held:
            return 0, ""
        return 1, "`"

    def _in_fence(self, final: bool) -> tuple[int, str]:
        held = self._held
        end = held.find(_FENCE)
        if end >= 0:
            self._fenced = False
            return end + len(_FENCE), held[: end + len(_FENCE)]
        # the last two characters may be the beginning of the fence's end
        size = len(held) if final else max(0, len(held) - len(_FENCE) + 1)
        return size, held[:size]

    def _check(self, citation: re.Match[str]) -> str:
        blanks, opening, inner = citation.groups()
        ranges = _NUMBERS.findall(inner)
        if not ranges or ((opening in _ROUND or "#" in inner) and self._is_text(citation)):
            return citation[0]
        kept: list[int] = []
        for first, last in ranges:
            for number in self._range(first, last or first):
                if number in self._numbers:
                    kept.append(number)
                else:
                    self.dropped += 1
        self.cited.extend(number for number in kept if number not in self.cited)
        if kept:
            return f"{blanks}[{', '.join(map(str, kept))}]"
        opened = _LAST_OPENING.search(self._shown)
        after = opened and _OPEN.fullmatch(self._shown, opened.end())
        return "?" if after and _may_be_label(after[1]) else ""

    def _is_text(self, brackets: re.Match[str]) -> bool:
        """Tell whether brackets that also have other uses are none of a citation."""
        blanks, opening, inner = brackets.groups()
        digits = max(MAX_DIGITS, len(str(max(self._numbers, default=0))))
        if re.search(rf"\d{{{digits + 1}}}", inner):
            return True
        if opening not in _ROUND:
            return False
        if not blanks and (self._shown[-1:].isalnum() or self._shown[-1:] in ("_", "`")):
            return True
        return self._is_item(inner)

    def _is_item(self, inner: str) -> bool:
        """Tell whether a number in round brackets counts items, and remember which one."""
        if not inner.isdecimal():
            return False
        number, before = int(inner), self._shown.rstrip(" ")
        first = number == 1 and (not before or before[-1] in _BEFORE_ITEMS)
        if first or (self._items and number == self._items + 1):
            self._items = number
            return True
        return False

    def _range(self, first: str, last: str) -> Collection[int]:
        """Return the numbers of n-m; [0], which no excerpt has, if that is not a range."""
        most = len(str(max(self._numbers, default=0)))
        if max(len(first), len(last)) > most or int(first) > int(last):
            return [0]
        return range(int(first), int(last) + 1)


def _may_be_label(begun: str) -> bool:
    return any(label.startswith(begun.lower()) for label in _LABELS)


@dataclass(frozen=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str
