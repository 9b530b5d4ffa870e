"""Notes on a query: how ambiguous signs were read, and how to ask for the other meaning.

A dash may exclude a word or begin an option of a command; NOT may be an operator or part of SQL.
syntax.py has the rules that decide.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mail_assets.search.language.request import QUOTED

#: Most examples of one kind that are reported.
MAX_NAMED = 3
#: An exclusion that may be an option or a number: -Wall, -O2, -fPIC, -rf, -22, -std=c99.
_LIKE_OPTION = re.compile(
    r"-(?:[A-Z].*|.{1,2}|[a-z][\d.]+|[a-z][A-Z].*|\d+(?:[.,]\d+)?|\w[\w-]*=.*)"
)


@dataclass
class Remarks:
    """Ambiguous parts of a query as typed, by how they were read.

    - `excluded`: words after a dash or NOT.
    - `options`, `operators`: searched as text.
    - `fields`: searched as text because of the form of their value, each with name and value.
    - `capitals`: searched as text because of their case, each with the form that is a field.
    - `empty`: fields without a value.
    - `unclosed`: quotes that never end, with the text after them.
    - `dates`: words that may be days.
    - `stars`: words with a star in front, each with the word after it.
    - `unknown`: finished notes on names that resemble a field's.
    """

    excluded: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    capitals: list[tuple[str, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    unclosed: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    stars: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def write(self, *, only_excludes: bool) -> tuple[str, ...]:
        """Return the notes; `only_excludes`: the query has exclusions only."""
        notes: list[str] = []
        if only_excludes:
            notes.append("Only exclusions were asked for: all other messages are listed by date.")
        doubtful = [one for one in self.excluded if only_excludes or _is_doubtful(one)]
        for one in _first(doubtful):
            bare = one.removeprefix("NOT ") if one.startswith("NOT ") else one[1:]
            notes.append(
                f'{cut(one)} was read as: without {cut(bare)}. To find it, write "{cut(one)}".'
            )
        for one in _first(self.options):
            bare = one.lstrip("-")
            notes.append(
                f"{cut(one)} was searched as text, like an option of a command. To exclude it, "
                f'write -"{cut(bare)}".'
            )
        for one in _first(self.operators):
            notes.append(
                f"{one} was searched as words. To exclude {one[4:]}, write -{one[4:]}."
                if one.startswith("NOT ")
                else f"{one} was searched as words."
            )
        for one in _first(self.fields):
            name, _, value = one.partition(":")
            notes.append(
                f"{cut(one)} was searched as text: it is not like a value of {name}:. To use the "
                f'field, write {name}:"{cut(value)}".'
            )
        for one, meant in [*dict.fromkeys(self.capitals)][:MAX_NAMED]:
            notes.append(
                f"{cut(one)} was searched as text: fields are in lower case, {cut(meant)}."
            )
        for one in _first(self.empty):
            notes.append(
                f"{one} has no value and was searched as text: write the value without a blank "
                f"before it, {one.lower()}word."
            )
        for one in _first(self.unclosed):
            notes.append(f"The quote before {cut(one[1:])} is not closed and was left out.")
        for one in _first(self.dates):
            notes.append(f"{one} was searched as text. For mail of that time, write date:{one}.")
        for one, word in [*dict.fromkeys(self.stars)][:MAX_NAMED]:
            notes.append(
                f"{cut(one)} was searched as {cut(word)}: words are found whole or by their "
                f"beginning, {cut(word)}*, and names by their parts too."
            )
        notes += [one.strip() for one in _first(self.unknown)]
        return tuple(notes)


def _is_doubtful(excluded: str) -> bool:
    if excluded.startswith("NOT "):
        return excluded.isupper()
    return excluded[0] != "-" or bool(_LIKE_OPTION.fullmatch(excluded))


def _first(signs: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(signs)][:MAX_NAMED]


def cut(text: str) -> str:
    """Shorten a text of the query for a note."""
    return f"{text[:QUOTED]}..." if len(text) > QUOTED else text
