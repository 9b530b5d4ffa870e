"""Write a corpus: the plan of its months, its archives, and curves that compare it with real mail.

`density` epochs share a month, so that a month has as many messages as in a busy list. The first
such *group* of epochs is in the newest years, the next one in the years before, back to FIRST_YEAR.
Further groups are in additional lists. Corpora of all sizes have the same density.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.corpus.source import SourceList
from benchmarks.corpus.transplant import (
    Renaming,
    Transplant,
    Transplanted,
    Vocabulary,
    read_vocabulary,
)
from mail_assets.mail.archive.compression import create_archive
from mail_assets.sources.message_source import format_message

#: First year of a corpus: the dates of earlier mail have other formats.
FIRST_YEAR = 1996


class CorpusMonth(NamedTuple):
    """A month of a list of the corpus.

    It has the messages of `source_month` of a source list once for each of `epochs`, `years` later.
    """

    list_name: str
    month: str
    source: SourceList
    source_month: str
    years: int
    epochs: range


def plan_months(lists: Sequence[SourceList], density: int) -> Iterator[CorpusMonth]:
    """Yield months without end, group after group; months of all lists are evenly mixed."""
    newest = max(one.last for one in lists)
    span = max(-(-_months(one.first, one.last) // 12) for one in lists)
    eras = max(1, (_year(newest) - FIRST_YEAR) // span)
    order = [
        (place / len(one.months), one, month)
        for one in lists
        for place, month in enumerate(sorted(one.months))
    ]
    order.sort(key=lambda entry: (entry[0], entry[1].name))
    for group in count():
        copy, era = divmod(group, eras)
        epochs = range(group * density, (group + 1) * density)
        for _, one, month in order:
            name = one.name if copy == 0 else f"{one.name}-{copy + 1}"
            years = _years_to(one.last, newest) - era * span
            yield CorpusMonth(name, _shift(month, years), one, month, years, epochs)


def _months(first: str, last: str) -> int:
    return 12 * (_year(last) - _year(first)) + int(last[5:]) - int(first[5:]) + 1


def _years_to(last: str, newest: str) -> int:
    """Return the years that a list can be moved forward and not pass the newest month."""
    return _year(newest) - _year(last) - (last[5:] > newest[5:])


def _shift(month: str, years: int) -> str:
    return f"{_year(month) + years}{month[4:]}"


def _year(month: str) -> int:
    return int(month[:4])


#: Ranges of real mail, in which a corpus must be: the exponent of Heaps' law, the share of lexemes
#: in one message only, and the share of texts in more than one month. Of PostgreSQL's lexemes, 48
#: to 65 % are in one message only; counted as here, with hosts and paths split, 46 to 51 %.
HEAPS, ONCE, REPEATED = (0.54, 0.70), (0.45, 0.65), (0.0, 0.01)
#: Messages at the first point of the curve.
FIRST_POINT = 1_000

_QUOTED = re.compile(rb"^[>|].*\n?|^.*(?:wrote|writes):\n", re.M)
_LEXEME = re.compile(rb"[a-z0-9]{2,}")


class Point(NamedTuple):
    """Size of the vocabulary after a number of messages."""

    messages: int
    words: int
    lexemes: int
    once: float


class Curves:
    """Counts of a corpus, collected message by message."""

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
        """Add the last point of the curve."""
        if not self.points or self.points[-1].messages < self._messages:
            self._mark()

    @property
    def heaps(self) -> float:
        """Exponent of Heaps' law over the curve; nan for a curve of one point."""
        if len(self.points) < 2:
            return float("nan")
        words, lexemes = (
            [np.log(getattr(one, of)) for one in self.points] for of in ("words", "lexemes")
        )
        return float(np.polyfit(words, lexemes, 1)[0])

    @property
    def repeated(self) -> float:
        """Share of texts that occur in more than one month of a list."""
        return sum(place == 0 for place in self._texts.values()) / len(self._texts)

    def faults(self) -> Iterator[str]:
        """Yield a description of each figure outside the range of real mail."""
        for name, value, (low, high) in (
            ("the exponent of Heaps' law", self.heaps, HEAPS),
            ("the share of lexemes in one message only", self.points[-1].once, ONCE),
            ("the share of texts in more than one month", self.repeated, REPEATED),
        ):
            if not low <= value <= high:
                yield f"{name} is {value:.4f}, not between {low} and {high}"

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
    """Sizes of threads, as connected sets of ids (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._owners: list[int] = []

    def add(self, ids: list[bytes]) -> None:
        """Join the ids that a message names; without ids it is a thread by itself."""
        numbers = [int(x[:14], 16) for x in ids] or [-len(self._owners) - 1]
        first = self._find(numbers[0])
        for number in numbers[1:]:
            self._parents[self._find(number)] = first
        self._owners.append(numbers[0])

    def sizes(self) -> list[int]:
        """Return the number of messages of each thread."""
        return [*Counter(map(self._find, self._owners)).values()]

    def _find(self, number: int) -> int:
        parents = self._parents
        while (parent := parents.setdefault(number, number)) != number:
            parents[number] = number = parents[parent]
        return number


def new_text(text: bytes) -> bytes:
    """Return a text without quotes, the signature, and all after the first patch begins."""
    own = _QUOTED.sub(b"", text).partition(b"\ndiff --git ")[0]
    return own.partition(b"\n-- \n")[0]


def _quantiles(values: list[int]) -> str:
    return " / ".join(f"{value:.0f}" for value in np.quantile(values, (0.1, 0.5, 0.9, 1)))


class Corpus:
    """Messages of a corpus, month after month."""

    def __init__(self, lists: Sequence[SourceList], density: int) -> None:
        self.vocabulary = read_vocabulary(
            message for one in lists for month in one.months.values() for message in month
        )
        self._lists, self._density = lists, density

    def months(self, messages: int) -> Iterator[tuple[CorpusMonth, Iterator[Transplanted]]]:
        """Yield the months with their messages; read these before the next month."""
        epochs: dict[int, Transplant] = {}
        left = messages
        for month in plan_months(self._lists, self._density):
            if month.epochs.start not in epochs:
                epochs = {one: make_transplant(self.vocabulary, one) for one in month.epochs}
            written = (
                epochs[epoch].write(message, month.years)
                for message in month.source.months[month.source_month]
                for epoch in month.epochs
            )
            some = [one for one, _ in zip(written, range(left), strict=False)]
            left -= len(some)
            yield month, iter(some)
            if not left:
                return


def make_transplant(vocabulary: Vocabulary, epoch: int) -> Transplant:
    """Return the writer of an epoch."""
    return Transplant(Renaming(vocabulary, epoch), epoch)


def write_corpus(corpus: Corpus, out: Path, messages: int, suffix: str = "") -> Curves:
    """Write a corpus of `messages` messages into a new folder; `suffix` is "" or ".gz".

    Raises:
        FileExistsError: the folder has a corpus.
    """
    curves = Curves()
    out.mkdir(parents=True, exist_ok=True)
    for month, written in corpus.months(messages):
        folder = out / month.list_name
        folder.mkdir(exist_ok=True)
        name = f"{month.list_name}.{month.month.replace('-', '')}{suffix}"
        with create_archive(folder / name, suffix) as file:
            for message in written:
                file.write(format_message(message.raw))
                curves.add((month.list_name, month.month), message)
    curves.finish()
    (out / "lists.toml").write_text(_lists_toml([*curves.months]))
    return curves


def _lists_toml(months: Sequence[tuple[str, str]]) -> str:
    lists = dict.fromkeys(sorted(name for name, _ in months))
    first, last = min(month for _, month in months), max(month for _, month in months)
    lines = [f'first_month = "{first}"', f'last_month = "{last}"']
    return "\n".join(
        chain(
            lines,
            *(
                (
                    "",
                    f"[{name}]",
                    f'source = "{name}"',
                    'dialect = "mboxrd"',
                    'language = "english"',
                    f'start = "{min(month for one, month in months if one == name)}"',
                )
                for name in lists
            ),
            ("",),
        )
    )
