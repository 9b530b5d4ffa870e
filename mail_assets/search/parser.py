"""The recursive descent over the tokens of a query; syntax.py has its grammar."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from mail_assets.search.expression import And, Field, Node, Not, Or, Text
from mail_assets.search.fields import EXCLUSIVE, OPTIONS, read_field, read_option
from mail_assets.search.request import RequestError
from mail_assets.search.tokens import Token

#: What an address, a host or a path has between its parts.
_WHOLE = re.compile(r"\w[@/.:]\w")


class Parser:
    """Reads tokens by recursive descent; sets options on the way."""

    def __init__(self, tokens: Sequence[Token], today: dt.date | None) -> None:
        self.tokens, self.at = tokens, 0
        self.today = today
        self.options: dict[str, Any] = {}

    def parse(self) -> And:
        """Return all that the tokens ask.

        Raises:
            RequestError: a field does not take its value.
        """
        node = self._sequence(top=True)
        return node if isinstance(node, And) else And((node,))

    def _sequence(self, *, top: bool = False) -> Node:
        """Read operands up to a closing parenthesis."""
        groups: list[list[Node]] = []
        joins: Token | None = None
        while (token := self._next()) is not None and token.kind != ")":
            if token.kind == "or" and groups:
                joins = token
            elif token.kind == "field" and token.name in OPTIONS:
                self._set_option(token, alone=top and joins is None)
            elif operand := self._operand(token):
                if joins:
                    groups[-1].append(operand)
                else:
                    groups.append([operand])
                joins = None
        if joins:  # nothing stands behind it
            groups.append([Text("word", joins.text)])
        return _all_of([one_of_these(group) for group in groups])

    def _operand(self, token: Token) -> Node | None:
        match token.kind:
            case "(":
                node = self._sequence()
                if node == And(()):
                    return None
                # in parentheses it is no alternative to the same field beside them
                return And((node,)) if isinstance(node, Field) else node
            case "not":
                return self._negated()
            case "field":
                return read_field(token.name, token.text, self.today)
            case "phrase" | "prefix":
                return Text(token.kind, token.text)
        return Text("word", token.text)

    def _negated(self) -> Node | None:
        while (token := self._next()) is not None and token.kind == "not":
            pass  # the parentheses between them are too deep
        if token is None:
            return None
        if token.kind == "field" and token.name in OPTIONS:
            raise RequestError(f"{token.name}: cannot be excluded")
        operand = self._operand(token)
        if isinstance(operand, Text) and operand.kind == "word":
            operand = _excluded_phrase(operand.text)
        return Not(_unwrap(operand)) if operand is not None else None

    def _set_option(self, token: Token, *, alone: bool) -> None:
        if not alone:
            raise RequestError(f"{token.name}: cannot be an alternative or stand in parentheses")
        option, value = read_option(token.name, token.text)
        self.options[option] = value

    def _next(self) -> Token | None:
        if self.at == len(self.tokens):
            return None
        self.at += 1
        return self.tokens[self.at - 1]


def _excluded_phrase(word: str) -> Text | None:
    """Return what excludes a word, in parts where it has hyphens.

    PostgreSQL has the parts of `well-known` besides, and an address or a path as a whole.
    """
    apart = word if _WHOLE.search(word) else word.replace("-", " ")
    text = " ".join(apart.split())
    return Text("phrase", text) if text else None


def one_of_these(parts: Sequence[Node]) -> Node:
    """Return one of these; of one, itself."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Node] = []
    for part in map(_unwrap, parts):
        flat += part.parts if isinstance(part, Or) else [part]
    return Or(tuple(flat))


def _unwrap(node: Node) -> Node:
    return node.parts[0] if isinstance(node, And) and len(node.parts) == 1 else node


def _all_of(parts: Sequence[Node]) -> Node:
    """Return all of these; the same exclusive field, several times, as alternatives."""
    merged: list[Node] = []
    places: dict[str, int] = {}
    for part in parts:
        if not isinstance(part, Field) or part.name not in EXCLUSIVE:
            merged.append(part)
        elif part.name in places:
            place = places[part.name]
            merged[place] = one_of_these([merged[place], part])
        else:
            places[part.name] = len(merged)
            merged.append(part)
    flat = [one for part in merged for one in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))
