"""The text of a query that ranks, taken apart into words and names."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from mail_assets.text.identifiers import find_identifiers


class ParsedQuery(NamedTuple):
    """The text that ranks, taken apart.

    `plain` is without identifiers. `identifiers` are names as they are written, and the file of a
    path; `identifier_parts` are their pieces, which say less.
    """

    plain: str
    identifiers: list[str]
    identifier_parts: list[str]


def take_apart(text: str) -> ParsedQuery:
    """Take the text of a query apart into words and names."""
    names = find_identifiers(text)
    parts = {part for name in names for part in _identifier_parts(name)}
    identifiers = [name for name in names if name not in parts]
    return ParsedQuery(_without(text, identifiers), identifiers, sorted(parts))


def _identifier_parts(name: str) -> set[str]:
    """Return the pieces of an identifier, except the last component of a path."""
    return {*find_identifiers(name)} - {name, name.rpartition("/")[2]}


def _without(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it, longest first, in any case."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    return text
