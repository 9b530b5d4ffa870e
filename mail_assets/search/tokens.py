"""A query in pieces: words, phrases, fields, and the signs between them."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from mail_assets.search.fields import is_field
from mail_assets.text.letters import IDEOGRAPHS, MARKS, UNSPACED

#: Parentheses in each other; those further inside are not looked at.
MAX_DEPTH = 20

_NAME = re.compile(r"([a-z]+):")
_ESCAPED_COLON = re.compile(r"([a-z]+)\\:")
_BRACKETED = re.compile(r"<[^\s<>]++>(?!\S)")
_LETTER = rf"[\w{MARKS}]"
#: Three letters, two of an unspaced script, or one that says something by itself.
_PREFIX = re.compile(rf"(?:{_LETTER}{{3,}}|[{UNSPACED}]{_LETTER}|{_LETTER}*[{IDEOGRAPHS}])\*")
_EXCLUDABLE = re.compile(rf"\w{_LETTER}|[{IDEOGRAPHS}]\*")

Kind = Literal["word", "phrase", "prefix", "field", "not", "or", "(", ")"]


class Token(NamedTuple):
    """A piece of a query; `name` is that of a field."""

    kind: Kind
    text: str
    name: str = ""


def tokenize(query: str) -> list[Token]:
    """Take a query apart. Any text is a query: what is no sign of the language is a word."""
    return [*_Tokenizer(query).tokens()]


def is_plain(word: str) -> bool:
    """Say whether a word that stands alone is read as it is, not as a sign of the language."""
    return tokenize(word) == [Token("word", word)]


class _Tokenizer:
    """Reads a query from left to right; of the open parentheses, `ignored` ones are too deep."""

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
        """Say whether the dash here stands before what can be excluded, not before an option."""
        after = self.query[self.at + 1 : self.at + 3]
        if after[:1] == '"':  # a phrase without text is no token: the next one would be excluded
            end = self.query.find('"', self.at + 2)
            return end > 0 and bool(self.query[self.at + 2 : end].strip())
        return after[:1] == "(" or bool(_EXCLUDABLE.match(after))

    def _run(self) -> Iterator[Token]:
        """Read up to the next space or quote, and a closing parenthesis that is not its own."""
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
    """Read what stands between spaces."""
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
    """Say whether a run is more than a word."""
    if run.startswith("-"):
        return bool(_EXCLUDABLE.match(run, 1))
    return [*_read_run(run)] != [Token("word", run)]
