"""The tokens of a query, and the recursive descent over them; syntax.py documents the grammar."""

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from mail_assets.search.language.expression import And, Field, Node, Not, Or, Text
from mail_assets.search.language.fields import (
    EXCLUSIVE,
    OPTIONS,
    SAME_FIELDS,
    clean_value,
    find_like,
    is_field,
    is_name,
    read_field,
    read_option,
    strip_stars,
)
from mail_assets.search.language.notes import Remarks
from mail_assets.search.language.request import RequestError
from mail_assets.text.letters import IDEOGRAPHS, MARKS, UNSPACED

#: Most nested parentheses; deeper ones are ignored.
MAX_DEPTH = 20

#: Quotes around a phrase or value: English, German, French, Danish, full width.
QUOTES = '"\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02'
#: Signs that exclude: hyphens, dashes, the minus sign, full width.
DASHES = "-\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_QUOTE = re.compile(f"[{QUOTES}]")
_DASH = re.compile(f"[{DASHES}]")
_ALL_QUOTES = frozenset(QUOTES)
_RUN = re.compile(rf"[^\s{QUOTES}]*")
#: A name and its colon; both may have full width.
_NAME = re.compile(r"([a-z_\uff41-\uff5a]+)[:\uff1a]")
_CAPITAL = re.compile(r"([A-Za-z]+):")
#: A name that may be a mistyped field: not one of C++ or of a URL.
_OTHER_NAME = re.compile(r"([A-Za-z_]+):(?=[^\s:/]|\Z)")
#: A word with a star in front, and a query that is no code (int *p;).
_STAR, _WORDS_ONLY = re.compile(r"\*+(\w[\w.-]*+)\**"), re.compile(r"[\w\s*.-]+")
#: A day or month in the form that `date:` takes.
_DATE = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-\d\d)?")
_ESCAPED_COLON = re.compile(r"([a-z]+)\\:")
_BRACKETED = re.compile(r"<[^\s<>]++>(?!\S)")
#: Values that contain blanks: in single quotes, in a subject's tag, in an id's brackets.
_SINGLE_QUOTED = re.compile(r"'([^'\"]{1,500})'(?=[\s)]|\Z)")
_TAGGED = re.compile(rf"\[[^\[\]{QUOTES}]{{1,200}}\][^\s{QUOTES}]*")
_ENCLOSED = re.compile(r"<[^<>]{1,2000}>(?=[\s)]|\Z)")
_LETTER = rf"[\w{MARKS}]"
#: A prefix has three letters, two of an unspaced script, or one ideograph. The beginning of a name
#: may have other signs; it has three characters, of which two are letters or digits.
_PREFIX = re.compile(rf"{_LETTER}{{3,}}|[{UNSPACED}]{_LETTER}|{_LETTER}*[{IDEOGRAPHS}]")
_BEGINNING = re.compile(rf"(?!-)[\w{MARKS}./:@#$+~%-]{{3,}}")
_STARS = frozenset("*\uff0a")
#: Signs after a dash that make it an option, a rule or an arrow (--, ->, -=), not an exclusion.
_NO_EXCLUSION = re.compile(rf"[{DASHES}>=|*]|[^\w(\\]*+(?:[\s{QUOTES}]|\Z)")
#: A tag of a subject, such as [PATCH -next]; a dash in it excludes nothing. A tag has no other
#: signs of the language: `-"word"` in brackets does exclude.
_TAG = re.compile(rf"\[[^\[\]():\uff1a*\uff0a\\{QUOTES}]*\]")
#: An option of a command, which is searched as text.
_OPTION = re.compile(r"-{1,2}\w[\w-]*(?:=\S*)?")
#: Words of SQL and of standards; before or after them, NOT is no operator.
_BEFORE_NOT = frozenset({"MUST", "SHALL", "SHOULD", "MAY", "CAN", "DO", "DOES", "IS", "IF"})
_AFTER_NOT = frozenset(
    {"NULL", "EXISTS", "IN", "LIKE", "ILIKE", "SIMILAR", "BETWEEN", "DISTINCT", "VALID", "FOUND"}
)

Kind = Literal["word", "phrase", "prefix", "field", "not", "or", "and", "(", ")"]


class Token(NamedTuple):
    """A piece of a query; `name` is the name of a field."""

    kind: Kind
    text: str
    name: str = ""


def tokenize(query: str, remarks: Remarks | None = None, *, dashes: bool = True) -> list[Token]:
    """Split a query into tokens, text into words; without `dashes`, a dash excludes nothing."""
    return [*_Tokenizer(query, Remarks() if remarks is None else remarks, dashes).tokens()]


def is_plain(word: str) -> bool:
    """Return whether a word on its own is read as text, without a sign of the language."""
    return tokenize(word) == [Token("word", word)]


def find_tags(query: str) -> list[range]:
    """Return the ranges of subject tags in a query; a dash in them excludes nothing."""
    return [range(*tag.span()) for tag in _TAG.finditer(query)]


class _Tokenizer:
    """Reads a query from left to right.

    `names` has the field of each open parenthesis, as in `from:(a OR b)`, or "". `ignored` counts
    the open parentheses that are nested too deeply.
    """

    def __init__(self, query: str, remarks: Remarks, dashes: bool) -> None:
        self.query, self.at = query, 0
        self.dashes = dashes
        self.tags = find_tags(query)
        self.remarks = remarks
        self.names: list[str] = []
        self.ignored = 0
        self.last_close = query.rfind(")")

    def tokens(self) -> Iterator[Token]:
        while self.at < len(self.query):
            sign = self.query[self.at]
            if sign.isspace():
                self.at += 1
            elif sign == "(":
                self.at += 1
                yield from self._open()
            elif sign == ")":
                self.at += 1
                yield from self._close()
            elif sign in _ALL_QUOTES:
                yield from self._phrase()
            elif _DASH.match(sign) and self._excludes():
                self.at += 1
                yield Token("not", sign)
                if self.query[self.at] != "(":
                    yield from self._excluded(sign)
            else:
                yield from self._run()

    def _run_at(self, start: int) -> str:
        found = _RUN.match(self.query, start)
        return found[0] if found else ""

    def _open(self, name: str = "") -> Iterator[Token]:
        if len(self.names) == MAX_DEPTH:
            self.ignored += 1
        else:
            self.names.append(name or self._name())
            yield Token("(", "(", name)

    def _close(self) -> Iterator[Token]:
        if self.ignored:
            self.ignored -= 1
        elif self.names:
            self.names.pop()
            yield Token(")", ")")

    def _name(self) -> str:
        return self.names[-1] if self.names else ""

    def _phrase(self) -> Iterator[Token]:
        end = self._find_closing(self.at)
        if end < 0:  # never closed: not a quote of the language
            if self.at == 0 or not self.query[self.at - 1].isalnum():  # not 3.5" or Ann"
                self.remarks.unclosed.append(self.query[self.at :].rstrip())
            self.at += 1
            return
        text = " ".join(clean_value(self.query[self.at + 1 : end]).split())
        self.at = end + 1
        if text:
            yield self._named(Token("phrase", text))

    def _find_closing(self, start: int) -> int:
        """Return where the quote at `start` is closed, or -1.

        A straight quote closes a straight one; any quote closes another kind: "x", “x”, „x“, »x«.
        """
        if self.query[start] == '"':
            return self.query.find('"', start + 1)
        closing = _QUOTE.search(self.query, start + 1)
        return closing.start() if closing else -1

    def _excludes(self) -> bool:
        """Return whether the dash here excludes something.

        It must begin a word and be outside tags. It excludes nothing before a single letter,
        another dash, or signs alone.
        """
        before, after = self.query[self.at - 1 : self.at], self.at + 1
        if not self.dashes or any(self.at in tag for tag in self.tags):
            return False
        if before and not before.isspace() and before != "(":
            return False
        follows = self.query[after : after + 1]
        if follows in _ALL_QUOTES:  # empty quotes make no token: the dash would hit the next one
            end = self._find_closing(after)
            return end > 0 and bool(self.query[after + 1 : end].strip())
        if follows == "(":
            return True
        if _NO_EXCLUSION.match(self.query, after):
            return False
        run = self._run_at(after).rstrip(").,;:!?")
        return len(run) > 1 and bool(re.search(r"\w", run))

    def _excluded(self, dash: str) -> Iterator[Token]:
        """Read the excluded operand; an operator in its place is a word."""
        if self.query[self.at] in _ALL_QUOTES:
            yield from self._phrase()
            return
        for place, token in enumerate(self._run(operators=False)):
            if not place and token.kind == "word":
                self.remarks.excluded.append(f"{dash}{token.text}")
            yield token

    def _run(self, *, operators: bool = True) -> Iterator[Token]:
        """Read up to the next space or quote, or an unmatched closing parenthesis."""
        start = self.at
        if (pasted := _BRACKETED.match(self.query, start)) and "@" in pasted[0]:
            self.at = pasted.end()  # a Message-ID, which may hold any sign
            yield Token("word", pasted[0])
            return
        if name := _NAME.match(self.query, start):
            known = _name_field(name[1])
            if is_name(known) and (taken := self._read_value(known, name.end())):
                self._remark_elsewhere(name[1], taken)
                yield taken
                return
        run = self._run_at(start)
        self.at = start + len(run)
        extra = max(run.count(")") - run.count("("), 0)
        text = (
            run.rstrip(")") if len(run) - len(run.rstrip(")")) <= extra else run[: -extra or None]
        )
        if text:
            token = _read_run(text, operators=operators)
            self._remark(text, token, operators)
            yield self._named(token)
        for _ in range(len(run) - len(text)):
            yield from self._close()

    def _read_value(self, name: str, start: int) -> Token | None:
        """Read a field's value in quotes, brackets or parentheses."""
        value, end = self._enclosed_value(name, start)
        if end > start and is_field(name, value, quoted=True):
            self.at = end
            return Token("field", value, name)
        if self.query[start : start + 1] == "(" and start < self.last_close:
            self.at = start + 1
            return next(self._open(name), None)
        return None

    def _enclosed_value(self, name: str, start: int) -> tuple[str, int]:
        """Return an enclosed value and its end; the end is `start` if there is none."""
        first = self.query[start : start + 1]
        if first == '"':
            return self._quoted_value(start)
        if first and first in _ALL_QUOTES:
            end = self._find_closing(start)
            return (self.query[start + 1 : end], end + 1) if end > 0 else ("", start)
        if found := _SINGLE_QUOTED.match(self.query, start):
            return found[1], found.end()
        if name in ("id", "thread") and (found := _ENCLOSED.match(self.query, start)):
            return found[0], found.end()
        if name == "subject" and (found := _TAGGED.match(self.query, start)):
            value = found[0]
            while value.endswith(")") and value.count(")") > value.count("("):
                value = value[:-1]
            return value, start + len(value)
        return "", start

    def _quoted_value(self, start: int) -> tuple[str, int]:
        """Return a quoted value and its end; two quotes in it stand for one."""
        end = start + 1
        while (end := self.query.find('"', end)) >= 0:
            if self.query[end + 1 : end + 2] != '"':
                return self.query[start + 1 : end].replace('""', '"'), end + 1
            end += 2
        return "", start

    def _named(self, token: Token) -> Token:
        name = self._name()
        if not name or token.kind not in ("word", "phrase", "prefix"):
            return token
        return Token("field", token.text, name)

    def _remark(self, text: str, token: Token, operators: bool) -> None:
        if token.kind == "field":
            self._remark_elsewhere(text.partition(":")[0], token)
        if token.kind != "word":
            return
        if operators and _OPTION.fullmatch(text):
            self.remarks.options.append(text)
        elif (name := _CAPITAL.match(_fold(text))) and is_name(name[1].lower()):
            self._remark_field(name[1], text[name.end() :])
        elif (
            (name := _OTHER_NAME.match(text))
            and (name[0] != text or self.query[self.at : self.at + 1] in _ALL_QUOTES)
            and (like := find_like(name[1]))
        ):
            self.remarks.unknown.append(f"{name[0]} is no field and was searched as text; {like}")
        elif _DATE.fullmatch(text):
            self.remarks.dates.append(text)
        elif (star := _STAR.fullmatch(text)) and _WORDS_ONLY.fullmatch(self.query):
            self.remarks.stars.append((text, star[1]))

    def _remark_elsewhere(self, name: str, token: Token) -> None:
        if name in SAME_FIELDS:
            self.remarks.unknown.append(f"{name}: was read as {token.name}:.")

    def _remark_field(self, name: str, value: str) -> None:
        """Note a field name that was read as text; also `Subject:` of a pasted header."""
        lower = name.lower()
        if not value:
            is_head = self.at == len(name) + 1
            is_quoted = self.query[self.at : self.at + 1] in _ALL_QUOTES
            if not is_quoted and (name == lower or is_head):
                self.remarks.empty.append(f"{name}:")
        elif name == lower and not is_field(lower, value.lower(), quoted=False):
            self.remarks.fields.append(f"{name}:{value}")
        elif is_field(lower, value, quoted=False):
            self.remarks.capitals.append((f"{name}:{value}", f"{lower}:{value}"))
        elif is_field(lower, value.lower(), quoted=False):
            self.remarks.capitals.append((f"{name}:{value}", f"{lower}:{value.lower()}"))


def _fold(text: str) -> str:
    """Return a text with full-width letters in normal width."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _name_field(written: str) -> str:
    """Translate a field name of another program to the name here."""
    name = _fold(written)
    return SAME_FIELDS.get(name, name)


def _read_run(run: str, *, operators: bool) -> Token:
    bare = run.lstrip("\\")
    if bare and bare != run and not is_plain(bare):
        return Token("word", run[1:])
    if escaped := _ESCAPED_COLON.match(run):
        return Token("word", f"{escaped[1]}:{run[escaped.end() :]}")
    folded = _fold(run)
    if operators and folded.lower() == "or":
        return Token("or", run)
    if operators and folded == "AND":
        return Token("and", run)
    if operators and folded == "NOT":
        return Token("not", run)
    if name := _NAME.match(run):
        known, value = _name_field(name[1]), run[name.end() :]
        if is_field(known, value, quoted=False):
            return Token("field", strip_stars(known, value), known)
    if run[-1] in _STARS:
        start = run[:-1]
        is_long = _BEGINNING.fullmatch(start) and sum(map(str.isalnum, start)) > 1
        if is_long or _PREFIX.fullmatch(start):
            return Token("prefix", start)
    return Token("word", run)


class Parser:
    """Builds the expression by recursive descent, and collects the options."""

    def __init__(
        self, tokens: Sequence[Token], today: dt.date | None, remarks: Remarks | None = None
    ) -> None:
        self.tokens, self.at = tokens, 0
        self.today = today
        self.remarks = Remarks() if remarks is None else remarks
        self.options: dict[str, Any] = {}

    def parse(self) -> And:
        """Return the expression of the tokens."""
        node = self._sequence(top=True)
        return node if isinstance(node, And) else And((node,))

    def _sequence(self, *, top: bool = False, name: str = "") -> Node:
        """Read up to the end or a closing parenthesis; `name` is the field of `from:( )`."""
        groups: list[list[Node]] = []
        required: set[int] = set()
        joint: Token | None = None
        while (token := self._next()) is not None and token.kind != ")":
            if token.kind in ("or", "and") and groups:
                joint = token
            elif token.kind == "field" and token.name in OPTIONS:
                if not top or (joint and joint.kind == "or"):
                    message = f"{token.name}: cannot be an alternative or stand in parentheses"
                    raise RequestError(message)
                option, value = read_option(token.name, token.text)
                self.options[option] = value
                joint = None
            elif operand := self._operand(token):
                if joint and joint.kind == "or":
                    groups[-1].append(operand)
                else:
                    groups.append([operand])
                    if joint:
                        required |= {len(groups) - 2, len(groups) - 1}
                joint = None
        if joint:  # an operator at the end
            groups.append([Text("word", joint.text)])
        parts = [one_of_these(group) for group in groups]
        for at in required:  # sides of AND: words become phrases, and a field gets its own group
            one = parts[at]
            parts[at] = And((one,)) if isinstance(one, Field) else _quote_words(one)
        # from:(tom lane) is one person whose name has both words
        return _all_of(parts, () if name == "from" else EXCLUSIVE)

    def _operand(self, token: Token) -> Node | None:
        match token.kind:
            case "(":
                node = self._sequence(name=token.name)
                if node == And(()):
                    return None
                # a field in parentheses is no alternative to the same field outside
                return And((node,)) if isinstance(node, Field) else node
            case "not" if not self._is_word(token):
                return self._negated(token)
            case "field":
                return read_field(token.name, token.text, self.today)
            case "phrase" | "prefix":
                return Text(token.kind, token.text)
        return Text("word", token.text)

    def _is_word(self, token: Token) -> bool:
        """Return whether NOT is a word: at the end, and in NOT NULL, MUST NOT and the like."""
        if _DASH.match(token.text):
            return False
        following = self._peek(self.at)
        if following is None or following.kind in (")", "or", "and"):
            return True
        before = self._peek(self.at - 2)
        if following.kind == "word" and following.text in _AFTER_NOT:
            self.remarks.operators.append(f"NOT {following.text}")
            return True
        if before and before.kind == "word" and before.text in _BEFORE_NOT:
            self.remarks.operators.append(f"{before.text} NOT")
            return True
        if following.kind == "word":
            self.remarks.excluded.append(f"NOT {following.text}")
        return False

    def _negated(self, token: Token) -> Node | None:
        following: Token | None = token
        while following is not None and following.kind == "not":
            following = self._next()  # parentheses between them were too deep
        if following is None:
            return None if _DASH.match(token.text) else Text("word", token.text)
        if following.kind == "field" and following.name in OPTIONS:
            raise RequestError(f"{following.name}: cannot be excluded")
        operand = self._operand(following)
        if isinstance(operand, Text) and operand.kind == "word":
            operand = _as_phrase(operand.text)
        return Not(_unwrap(operand)) if operand is not None else None

    def _next(self) -> Token | None:
        if self.at == len(self.tokens):
            return None
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self, place: int) -> Token | None:
        return self.tokens[place] if 0 <= place < len(self.tokens) else None


def _as_phrase(word: str) -> Text:
    """Return a phrase of one word as typed, without quotes in it."""
    return Text("phrase", " ".join(word.replace('"', " ").split()))


def _quote_words(node: Node) -> Node:
    match node:
        case And(parts):
            return And(tuple(map(_quote_words, parts)))
        case Or(parts):
            return Or(tuple(map(_quote_words, parts)))
        case Text("word", text):
            return _as_phrase(text)
    return node


def one_of_these(parts: Sequence[Node]) -> Node:
    """Join parts by or; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Node] = []
    for part in map(_unwrap, parts):
        flat += part.parts if isinstance(part, Or) else [part]
    return Or(tuple(flat))


def _unwrap(node: Node) -> Node:
    return node.parts[0] if isinstance(node, And) and len(node.parts) == 1 else node


def _all_of(parts: Sequence[Node], exclusive: Collection[str]) -> Node:
    """Join parts by and; several values of one exclusive field become alternatives."""
    merged: list[Node] = []
    places: dict[str, int] = {}
    for part in parts:
        if not isinstance(part, Field) or part.name not in exclusive:
            merged.append(part)
        elif part.name in places:
            place = places[part.name]
            merged[place] = one_of_these([merged[place], part])
        else:
            places[part.name] = len(merged)
            merged.append(part)
    flat = [one for part in merged for one in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))
