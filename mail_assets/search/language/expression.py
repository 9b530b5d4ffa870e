"""The expression of a query: a tree, and the clauses that every hit meets.

A tree joins texts and fields by and, or and not. `to_clauses` converts it to conjunctive normal
form: each hit meets at least one condition of every clause. In this form, not applies only to a
single text or field. SQL, the vector index and the word index all take it.
"""

import datetime as dt
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from mail_assets.search.language.request import RequestError

#: Most clauses of a query, and most conditions of a clause; people write fewer than ten.
MAX_CLAUSES = 64


class Text(NamedTuple):
    """Words as typed: a word that ranks, a phrase, or the beginning of words."""

    kind: Literal["word", "phrase", "prefix"]
    text: str


class Period(NamedTuple):
    """Days in UTC from `start` (inclusive) to `end` (exclusive); None means no limit."""

    start: dt.date | None
    end: dt.date | None


class Field(NamedTuple):
    """A field and its value, in the type that fields.py reads it as."""

    name: str
    value: str | Period


Leaf: TypeAlias = Text | Field


@dataclass(frozen=True)
class And:
    """All of the parts."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Or:
    """At least one of the parts."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Not:
    """The opposite of the part."""

    part: "Node"


Node: TypeAlias = Leaf | And | Or | Not


class Condition(NamedTuple):
    """A text or field, or its opposite."""

    leaf: Leaf
    negated: bool = False


#: Alternatives; every hit meets at least one.
Clause: TypeAlias = tuple[Condition, ...]


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the texts and fields of a tree, in their order."""
    match node:
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case Text() | Field():
            yield node


def only_words(node: Node) -> bool:
    """Return whether a tree has words only: they rank, and no hit needs them."""
    match node:
        case And(parts) | Or(parts):
            return all(map(only_words, parts))
        case Text(kind="word"):
            return True
    return False


def ranking_text(node: Node) -> str:
    """Join the texts that rank: words and phrases that are not negated, without prefixes."""
    match node:
        case And(parts):
            return " ".join(filter(None, map(ranking_text, parts)))
        case Or(parts):
            separator = " or " if only_words(node) else " "
            return separator.join(filter(None, map(ranking_text, parts)))
        case Text(kind="word" | "phrase"):
            return node.text
    return ""


def held_phrases(node: Node) -> list[str]:
    """Return the phrases of a tree that are not negated, each once."""
    match node:
        case And(parts) | Or(parts):
            return list(dict.fromkeys(one for part in parts for one in held_phrases(part)))
        case Text("phrase", text):
            return [text]
    return []


def drop_quotes(node: Node) -> Node:
    """Replace each phrase that is not negated by its words."""
    match node:
        case And(parts):
            flat: list[Node] = []
            for part in map(drop_quotes, parts):
                flat += part.parts if isinstance(part, And) else [part]
            return And(tuple(flat))
        case Or(parts):
            return Or(tuple(map(drop_quotes, parts)))
        case Text("phrase", text):
            first, *rest = (Text("word", word) for word in text.split())
            return And((first, *rest)) if rest else first
    return node


def to_clauses(node: Node, *, words: bool = False) -> tuple[Clause, ...]:
    """Return the clauses that every hit meets; parts of words only are included with `words`.

    Raises:
        RequestError: there are more than MAX_CLAUSES clauses, or more conditions in one.
    """
    parts = node.parts if isinstance(node, And) else (node,)
    required = [part for part in parts if words or not only_words(part)]
    clauses: dict[Clause, None] = {}
    for part in required:
        clauses |= dict.fromkeys(_normalize(part, negated=False))
        _check_size(len(clauses))
    return tuple(clauses)


def _normalize(node: Node, *, negated: bool) -> list[Clause]:
    """Convert to conjunctive normal form; De Morgan's laws move each not to the leaves."""
    match node:
        case Not(part):
            return _normalize(part, negated=not negated)
        case And(parts) | Or(parts):
            normal = [_normalize(part, negated=negated) for part in parts]
            if isinstance(node, And) != negated:
                return [clause for clauses in normal for clause in clauses]
            return _distribute(normal)
        case Text() | Field():
            return [(Condition(node, negated),)]


def _distribute(alternatives: list[list[Clause]]) -> list[Clause]:
    clauses: list[Clause] = [()]
    for alternative in alternatives:
        _check_size(len(clauses) * len(alternative))
        clauses = [
            tuple(dict.fromkeys(left + right))
            for left, right in itertools.product(clauses, alternative)
        ]
        _check_size(max(map(len, clauses), default=0))
    return clauses


def _check_size(size: int) -> None:
    if size > MAX_CLAUSES:
        raise RequestError(
            f"the query has too many conditions: at most {MAX_CLAUSES} quoted, excluded, "
            "required or alternative parts"
        )
