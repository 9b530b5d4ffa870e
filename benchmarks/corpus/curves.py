"""Curves that a corpus has in common with real mail, measured while it is written."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.corpus.transplant import Transplanted

#: Real mail's, in which a corpus must lie: the exponent of Heaps' law, the share of lexemes that
#: stand in one message only, and the share of texts that stand in more than one month. Of
#: PostgreSQL's lexemes 48 to 65 % stand in one message only; it keeps hosts and paths whole, which
#: are several words here: so counted, real mail has 46 to 51 %.
HEAPS, ONCE, REPEATED = (0.54, 0.70), (0.45, 0.65), (0.0, 0.01)
#: Messages behind the first point of the curve.
FIRST_POINT = 1_000

_QUOTED = re.compile(rb"^[>|].*\n?|^.*(?:wrote|writes):\n", re.M)
_LEXEME = re.compile(rb"[a-z0-9]{2,}")


class Point(NamedTuple):
    """The vocabulary after so many messages."""

    messages: int
    words: int
    lexemes: int
    once: float


class Curves:
    """Counts of a corpus, message by message."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.months: Counter[tuple[str, str]] = Counter()
        self.bytes = 0
        self._messages = self._words = 0
        self._lexemes: Counter[bytes] = Counter()
        self._texts: dict[int, int] = {}
        self._threads = Threads()

    def add(self, month: tuple[str, str], message: Transplanted) -> None:
        """Count a message of a (list, month)."""
        self.months[month] += 1
        self.bytes += len(message.raw)
        new = new_text(message.text)
        words = _LEXEME.findall(new.lower())
        self._messages += 1
        self._words += len(words)
        self._lexemes.update({*words})
        text, place = hash(b" ".join(words)), hash(month)
        if self._texts.setdefault(text, place) != place:
            self._texts[text] = 0
        self._threads.add(message.ids)
        if self._messages >= FIRST_POINT * 2 ** len(self.points):
            self._mark()

    def finish(self) -> None:
        """Take the last point of the curve."""
        if not self.points or self.points[-1].messages < self._messages:
            self._mark()

    @property
    def heaps(self) -> float:
        """The exponent of Heaps' law over the curve, nan for a curve of one point."""
        if len(self.points) < 2:
            return float("nan")
        words, lexemes = (
            [np.log(getattr(one, of)) for one in self.points] for of in ("words", "lexemes")
        )
        return float(np.polyfit(words, lexemes, 1)[0])

    @property
    def repeated(self) -> float:
        """The share of texts that stand in more than one month of a list."""
        return sum(place == 0 for place in self._texts.values()) / len(self._texts)

    def faults(self) -> Iterator[str]:
        """Yield what is not as in real mail."""
        for name, value, (low, high) in (
            ("the exponent of Heaps' law", self.heaps, HEAPS),
            ("the share of lexemes in one message only", self.points[-1].once, ONCE),
            ("the share of texts in more than one month", self.repeated, REPEATED),
        ):
            if not low <= value <= high:
                yield f"{name} is {value:.4f}, not from {low} to {high}"

    def tables(self) -> Iterator[str]:
        """Yield the curves and figures in Markdown."""
        yield pd.DataFrame(self.points).round(3).to_markdown(index=False)
        yield pd.DataFrame([self._figures()]).T.to_markdown(headers=["figure", "value"])

    def _figures(self) -> dict[str, Any]:
        return {
            "messages": self._messages,
            "MB": round(self.bytes / 1e6, 1),
            "Heaps' exponent": round(self.heaps, 3),
            "lexemes in one message only": f"{self.points[-1].once:.1%}",
            "texts in more than one month": f"{self.repeated:.2%}",
            "months": len(self.months),
            "messages a month, p10/p50/p90/max": _quantiles([*self.months.values()]),
            "messages a thread, p10/p50/p90/max": _quantiles(self._threads.sizes()),
        }

    def _mark(self) -> None:
        once = sum(count == 1 for count in self._lexemes.values()) / max(len(self._lexemes), 1)
        self.points.append(Point(self._messages, self._words, len(self._lexemes), once))


class Threads:
    """Sizes of connected sets of ids, by union and find."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._owners: list[int] = []

    def add(self, ids: list[bytes]) -> None:
        """Tie together what a message names; without an id it is a thread of its own."""
        numbers = [int(x[:14], 16) for x in ids] or [-len(self._owners) - 1]
        first = self._find(numbers[0])
        for number in numbers[1:]:
            self._parents[self._find(number)] = first
        self._owners.append(numbers[0])

    def sizes(self) -> list[int]:
        """Return the messages of each thread."""
        return [*Counter(map(self._find, self._owners)).values()]

    def _find(self, number: int) -> int:
        parents = self._parents
        while (parent := parents.setdefault(number, number)) != number:
            parents[number] = number = parents[parent]
        return number


def new_text(text: bytes) -> bytes:
    """Return a text without quotes, its signature and what is from the first patch on."""
    own = _QUOTED.sub(b"", text).partition(b"\ndiff --git ")[0]
    return own.partition(b"\n-- \n")[0]


def _quantiles(values: list[int]) -> str:
    return " / ".join(f"{value:.0f}" for value in np.quantile(values, (0.1, 0.5, 0.9, 1)))
