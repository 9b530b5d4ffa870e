"""Check the citations of an answer while it streams: only those of existing excerpts are shown.

[n], [n, m] and [n-m] are citations; numbers without an excerpt are removed and counted. What might
become a citation is held back until it is one or cannot be. Brackets in `code` on one line and in
fenced blocks are code: `argv[1]` stays unchanged.
"""

import re
from collections.abc import Collection

from mail_assets.answers.prompt import strip_invisible

#: Brackets with nothing but numbers and separators, also "[,7]" and "[7 8]".
_CITATION = re.compile(r"( *)\[([\s,;\u2013-]*\d[\d\s,;\u2013-]*)\]")
#: A number, or a range of them.
_NUMBERS = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
#: The beginning of a citation, up to the end of what has come.
_BEGUN = re.compile(r" *(?:\[[\d\s,;\u2013-]*)?")
_SPECIAL = re.compile(r"(?<! ) *+\[|`|(?<! ) ++\Z")
_CODE = re.compile(r"`[^`\n]*`")
_FENCE = "```"
#: After "[" and these, a number would read as a citation after all: "[[9]7]".
_OPEN = re.compile(r"[\d\s,;\u2013-]*")
MAX_HELD = 200  # characters: longer is neither a citation nor a piece of code worth waiting for


class CitationFilter:
    """Passes on an answer without its wrong citations.

    `cited` are the numbers in the order of their first use; `dropped` counts those removed.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.cited: list[int] = []
        self.dropped = 0
        self._numbers = numbers
        self._held = self._shown = ""
        self._fenced = False

    def feed(self, text: str) -> str:
        """Take a piece of the answer; return what can be shown now."""
        self._held += strip_invisible(text)
        return self._release(final=False)

    def finish(self) -> str:
        """Return what was held back, at the end of the answer."""
        return self._release(final=True)

    def _release(self, final: bool) -> str:
        before = len(self._shown)
        while self._held:
            size, text = self._next(final)
            if not size:
                break
            self._shown += text
            self._held = self._held[size:]
        return self._shown[before:]

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
            return citation.end(), self._check(*citation.groups())
        if wait and _BEGUN.fullmatch(held):
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

    def _check(self, blanks: str, numbers: str) -> str:
        kept: list[int] = []
        for first, last in _NUMBERS.findall(numbers):
            for number in self._range(first, last or first):
                if number in self._numbers:
                    kept.append(number)
                else:
                    self.dropped += 1
        self.cited.extend(number for number in kept if number not in self.cited)
        if kept:
            return f"{blanks}[{', '.join(map(str, kept))}]"
        _, bracket, after = self._shown.rpartition("[")
        return "?" if bracket and _OPEN.fullmatch(after) else ""

    def _range(self, first: str, last: str) -> Collection[int]:
        """Return the numbers of n-m; [0], which no excerpt has, if that is not a range."""
        most = len(str(max(self._numbers, default=0)))
        if max(len(first), len(last)) > most or int(first) > int(last):
            return [0]
        return range(int(first), int(last) + 1)
