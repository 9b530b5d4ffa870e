"""The tokens of a query, and the recursive descent over them; syntax.py documents the grammar."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from mail_assets.search.language.expression import And, Field, Node, Not, Or, Text
from mail_assets.search.language.fields import EXCLUSIVE, OPTIONS, is_field, read_field, read_option
from mail_assets.search.language.request import RequestError
from mail_assets.text.letters import IDEOGRAPHS, MARKS, UNSPACED

#: Nested parentheses; deeper ones are ignored.
MAX_DEPTH = 20

_NAME = re.compile(r"([a-z]+):")
_ESCAPED_COLON = re.compile(r"([a-z]+)\\:")
_BRACKETED = re.compile(r"<[^\s<>]++>(?!\S)")
_LETTER = rf"[\w{MARKS}]"
#: A prefix has three letters, two of an unspaced script, or one that is a word by itself.
_PREFIX = re.compile(rf"(?:{_LETTER}{{3,}}|[{UNSPACED}]{_LETTER}|{_LETTER}*[{IDEOGRAPHS}])\*")
_EXCLUDABLE = re.compile(rf"\w{_LETTER}|[{IDEOGRAPHS}]\*")

Kind = Literal["word", "phrase", "prefix", "field", "not", "or", "(", ")"]


class Token(NamedTuple):
    """A piece of a query; `name` is that of a field."""

    kind: Kind
    text: str
    name: str = ""


def tokenize(query: str) -> list[Token]:
    """Return the tokens of a query; any text without a sign of the language is words."""
    return [*_Tokenizer(query).tokens()]


def is_plain(word: str) -> bool:
    """Return whether a word that stands alone is read as it is, not as a sign of the language."""
    return tokenize(word) == [Token("word", word)]


class _Tokenizer:
    """Reads a query from left to right; `ignored` counts open parentheses that are too deep."""

    def __init__(self, query: str) -> None:
        self.query, self.at = query, 0
        self.depth = self.ignored = 0

    def tokens(self) -> Iterator[Token]:
        while self.at < len(self.query):
            sign = self.query[self.at]
            if sign.isspace():
                self.at += 1
            elif sign == "(":
                yield from self._open()
            elif sign == ")":
                self.at += 1
                yield from self._close()
            elif sign == '"':
                yield from self._phrase()
            elif sign == "-" and self._excludes():
                self.at += 1
                yield Token("not", "-")
            else:
                yield from self._run()

    def _open(self) -> Iterator[Token]:
        self.at += 1
        if self.depth == MAX_DEPTH:
            self.ignored += 1
        else:
            self.depth += 1
            yield Token("(", "(")

    def _close(self) -> Iterator[Token]:
        if self.ignored:
            self.ignored -= 1
        elif self.depth:
            self.depth -= 1
            yield Token(")", ")")

    def _phrase(self) -> Iterator[Token]:
        end = self.query.find('"', self.at + 1)
        if end < 0:  # never closed: no sign
            self.at += 1
            return
        text = " ".join(self.query[self.at + 1 : end].split())
        self.at = end + 1
        if text:
            yield Token("phrase", text)

    def _excludes(self) -> bool:
        """Return whether the dash here excludes something, and begins no command-line option."""
        after = self.query[self.at + 1 : self.at + 3]
        if after[:1] == '"':  # a phrase without text is no token: the next one would be excluded
            end = self.query.find('"', self.at + 2)
            return end > 0 and bool(self.query[self.at + 2 : end].strip())
        return after[:1] == "(" or bool(_EXCLUDABLE.match(after))

    def _run(self) -> Iterator[Token]:
        """Read up to the next space or quote; closing parentheses without an opening one end it."""
        start = self.at
        if (pasted := _BRACKETED.match(self.query, start)) and "@" in pasted[0]:
            self.at = pasted.end()  # a Message-ID, which may hold any sign
            yield Token("word", pasted[0])
            return
        if (name := _NAME.match(self.query, start)) and self.query[name.end() :][:1] == '"':
            value, end = self._quoted_value(name.end())
            if is_field(name[1], value, quoted=True):
                self.at = end
                yield Token("field", value, name[1])
                return
        while self.at < len(self.query) and not self._ends_run(self.query[self.at]):
            self.at += 1
        run = self.query[start : self.at]
        extra = max(run.count(")") - run.count("("), 0)
        text = (
            run.rstrip(")") if len(run) - len(run.rstrip(")")) <= extra else run[: -extra or None]
        )
        yield from _read_run(text)
        for _ in range(len(run) - len(text)):
            yield from self._close()

    def _ends_run(self, sign: str) -> bool:
        return sign.isspace() or sign == '"'

    def _quoted_value(self, start: int) -> tuple[str, int]:
        """Return a value in quotes, in which a quote is doubled, and where it ends."""
        end = start + 1
        while (end := self.query.find('"', end)) >= 0:
            if self.query[end + 1 : end + 2] != '"':
                return self.query[start + 1 : end].replace('""', '"'), end + 1
            end += 2
        return "", start


def _read_run(run: str) -> Iterator[Token]:
    if not run:
        return
    bare = run.lstrip("\\")
    if bare and bare != run and _is_special(bare):
        yield Token("word", run[1:])
    elif escaped := _ESCAPED_COLON.match(run):
        yield Token("word", f"{escaped[1]}:{run[escaped.end() :]}")
    elif run.lower() == "or":
        yield Token("or", run)
    elif (name := _NAME.match(run)) and is_field(name[1], run[name.end() :], quoted=False):
        yield Token("field", run[name.end() :], name[1])
    elif _PREFIX.fullmatch(run):
        yield Token("prefix", run[:-1])
    else:
        yield Token("word", run)


def _is_special(run: str) -> bool:
    if run.startswith("-"):
        return bool(_EXCLUDABLE.match(run, 1))
    return [*_read_run(run)] != [Token("word", run)]


#: A sign between the parts of an address, a host or a path.
_WHOLE = re.compile(r"\w[@/.:]\w")


class Parser:
    """Reads tokens by recursive descent; sets options on the way."""

    def __init__(self, tokens: Sequence[Token], today: dt.date | None) -> None:
        self.tokens, self.at = tokens, 0
        self.today = today
        self.options: dict[str, Any] = {}

    def parse(self) -> And:
        """Return the expression of the tokens."""
        node = self._sequence(top=True)
        return node if isinstance(node, And) else And((node,))

    def _sequence(self, *, top: bool = False) -> Node:
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
        if joins:  # nothing follows it
            groups.append([Text("word", joins.text)])
        return _all_of([one_of_these(group) for group in groups])

    def _operand(self, token: Token) -> Node | None:
        match token.kind:
            case "(":
                node = self._sequence()
                if node == And(()):
                    return None
                # in parentheses it is no alternative to the same field outside
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
    """Return the phrase that excludes a word, in parts where it has hyphens.

    PostgreSQL indexes the parts of `well-known` too, but an address or a path only as a whole.
    """
    apart = word if _WHOLE.search(word) else word.replace("-", " ")
    text = " ".join(apart.split())
    return Text("phrase", text) if text else None


def one_of_these(parts: Sequence[Node]) -> Node:
    """Return the alternatives of these; a single one stays itself."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Node] = []
    for part in map(_unwrap, parts):
        flat += part.parts if isinstance(part, Or) else [part]
    return Or(tuple(flat))


def _unwrap(node: Node) -> Node:
    return node.parts[0] if isinstance(node, And) and len(node.parts) == 1 else node


def _all_of(parts: Sequence[Node]) -> Node:
    """Return all of these; several values of one exclusive field become alternatives."""
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
