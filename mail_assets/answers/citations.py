"""Check the citations and references of an answer while it streams.

A citation is brackets with numbers, separators, labels and, after a dagger, text that some models
add to a source:

    citation  = opening (number | separator | label)* [dagger text] closing
    separator = white space , ; & ^ # and a dash, which makes a range of two numbers

It is shown as [n, m]. Numbers without an excerpt are removed and counted. Round brackets and "#"
have other uses too. They are text, not citations, in these cases: a number with more digits than a
citation needs, as in "(2024)" and "[#17254]"; round brackets directly after a word, as in
"open(2)"; list items "(1) ..., (2) ...". Brackets in `code` on one line and in fenced blocks stay
unchanged: `argv[1]`.

A reference is an address, a Message-ID or a URL. References that no excerpt has are removed too.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from mail_assets.openai import EndpointError
from mail_assets.text.untrusted import strip_invisible

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
#: The beginning of a citation at the end of the text so far; group 1 is the beginning of a label.
_BEGUN = re.compile(rf" *(?:[{_OPENING}]{_INNER}(?:{_DAGGER}|([^\W\d_]*)))?", re.IGNORECASE)
#: Text after an opening bracket that a number would still turn into a citation: "[[9]7]".
_OPEN = re.compile(rf"{_INNER}([^\W\d_]*)", re.IGNORECASE)
#: A number, or a range of them.
_NUMBERS = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
_SPECIAL = re.compile(rf"(?<! ) *+[{_OPENING}]|`|(?<! ) ++\Z")
_LAST_OPENING = re.compile(rf"[{_OPENING}](?=[^{_OPENING}]*\Z)")
_CODE = re.compile(r"`[^`\n]*`")
_FENCE = "```"
#: Characters before the first list item "(1)"; it may also begin the answer.
_BEFORE_ITEMS = "\n:;,"
#: Most digits of a citation in round brackets, unless the number of an excerpt has more.
MAX_DIGITS = 2
#: Most characters held back: longer text is neither a citation nor code in one line.
MAX_HELD = 200


class CitationFilter:
    """Removes wrong citations from an answer as it streams.

    Text that may become a citation is held back until this is decided. `cited` has the numbers in
    the order of their first use; `dropped` counts the removed ones. Only the end of the shown text
    is kept, so that each piece costs the same.
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
        """Return the text held back at the end of the answer."""
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
        """Return the number of held characters that are decided, and the text to show for them."""
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
        # the last two characters may begin the end of the fence
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
        """Return whether brackets with other uses are text, not a citation."""
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
        """Return whether a number in round brackets counts items, and remember it."""
        if not inner.isdecimal():
            return False
        number, before = int(inner), self._shown.rstrip(" ")
        first = number == 1 and (not before or before[-1] in _BEFORE_ITEMS)
        if first or (self._items and number == self._items + 1):
            self._items = number
            return True
        return False

    def _range(self, first: str, last: str) -> Collection[int]:
        """Return the numbers of n-m; [0], which no excerpt has, if it is not a range."""
        most = len(str(max(self._numbers, default=0)))
        if max(len(first), len(last)) > most or int(first) > int(last):
            return [0]
        return range(int(first), int(last) + 1)


def _may_be_label(begun: str) -> bool:
    return any(label.startswith(begun.lower()) for label in _LABELS)


#: Replaces a removed reference.
REMOVED = "[...]"
#: An address or a Message-ID, with "@", or a URL, with "://".
_REFERENCE = re.compile(
    r"(?<![\w.+$=/-])[\w.+$=/-]++@[\w-]++(?:\.[\w-]++)++|\b[a-z][a-z0-9+.-]{1,20}+://[^\s<>\"'`\])}\u3001\u3002\uff0c]*+",
    re.IGNORECASE,
)
#: Ends of words: blanks, and the punctuation of Chinese and Japanese.
_BLANKS = " \n\t\u3000\u3001\u3002\uff0c"
_AFTER = ".,;:!?"
#: Most characters of a word held back: each piece is searched together with all of them.
MAX_WORD = 2_000


class ReferenceFilter:
    """Removes references that are not in the text `known` from an answer, and counts them."""

    def __init__(self, known: str) -> None:
        self.dropped = 0
        self._known = known.lower()

    def filter(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts in whole words of up to MAX_WORD, each as soon as the next one begins.

        Raises:
            EndpointError: the server failed; the text before that was yielded.
        """
        held = ""
        try:
            for text in texts:
                text = held + strip_invisible(text)
                end = 1 + max(map(text.rfind, _BLANKS))
                end = len(text) if len(text) - end > MAX_WORD else end
                held = text[end:]
                if end:
                    yield self._check(text[:end])
        except EndpointError:
            yield self._check(held)
            raise
        yield self._check(held)

    def _check(self, text: str) -> str:
        return _REFERENCE.sub(self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        reference = found[0].rstrip(_AFTER)
        if reference.lower() in self._known:
            return found[0]
        self.dropped += 1
        return REMOVED + found[0][len(reference) :]
