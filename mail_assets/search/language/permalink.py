"""Permalinks: a request as one query string, and as a line of plain words."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from mail_assets.search.language.expression import (
    And,
    Field,
    Node,
    Not,
    Or,
    Period,
    Text,
    leaves,
    only_words,
)
from mail_assets.search.language.fields import EXCLUSIVE, OPTIONS, write_field
from mail_assets.search.language.grammar import Token, find_tags, is_plain, tokenize
from mail_assets.search.language.request import Request, Sort
from mail_assets.search.language.syntax import ParsedRequest


def build_permalink(parsed: ParsedRequest) -> str:
    """Return the query that reads as the same request; relative dates become days.

    Options come first, then conditions, then texts in their order. So requests whose conditions
    have another order get the same query.
    """
    defaults = {field.name: field.default for field in fields(Request)}
    options = {
        name: value
        for name, (option, _) in OPTIONS.items()
        if (value := getattr(parsed.request, option)) != defaults[option]
    }
    written = [write_field(name, value) for name, value in options.items()]
    node = And((*_sort_conditions(parsed.node),))
    link = _write_all(node)
    if find_tags(link):  # in [a NOT b] only a quoted word can be excluded
        link = _write_all(node, quoted=True)
    return " ".join([*written, link]).strip()


def _sort_conditions(node: And) -> Iterator[Node]:
    """Yield the parts without texts, each once, alphabetically; then the others."""
    conditions = {part: _write(part) for part in node.parts if not _has_text(part)}
    yield from sorted(
        conditions, key=lambda part: (conditions[part].lstrip("(-"), conditions[part])
    )
    yield from filter(_has_text, node.parts)


def _has_text(node: Node) -> bool:
    return any(isinstance(leaf, Text) for leaf in leaves(node))


def _write_all(node: And, *, quoted: bool = False) -> str:
    """Write all parts; fields that would become alternatives get parentheses.

    `quoted`: write excluded words in quotes.
    """
    names = Counter(part.name for part in node.parts if isinstance(part, Field))
    alone = {name for name in EXCLUSIVE if names[name] > 1}
    return " ".join(
        _in_parentheses(_write(part))
        if isinstance(part, Field) and part.name in alone
        else _write(part, quoted=quoted)
        for part in node.parts
    )


def _in_parentheses(written: str) -> str:
    """Put parentheses around a text; a space keeps the last one out of a word or Message-ID."""
    last = written.rpartition(" ")[2]
    takes = last.count("(") > last.count(")") or last.endswith(">")
    return f"({written} )" if takes else f"({written})"


def _write(node: Node, *, quoted: bool = False) -> str:
    match node:
        case And():
            return _in_parentheses(_write_all(node, quoted=quoted))
        case Or(parts):
            return _in_parentheses(" OR ".join(_write(part, quoted=quoted) for part in parts))
        case Not(Text("phrase", text)) if not quoted and _is_excluded_alone(text):
            return f"-{text}"
        case Not(part):
            written = _write(part, quoted=quoted)  # two dashes together would not exclude
            return f"-{_in_parentheses(written) if isinstance(part, Not) else written}"
        case Field(name, value):
            return write_field(name, value)
        case Text("phrase", text):
            return f'"{text}"'
        case Text("prefix", text):
            return f"{text}*"
        case Text(text=text):
            return text if is_plain(text) else f"\\{text}"


def _is_excluded_alone(text: str) -> bool:
    """Return whether a dash excludes all of a text without quotes."""
    return tokenize(f"-{text}") == [Token("not", "-"), Token("word", text)]


def describe_request(parsed: ParsedRequest) -> str:
    """Describe a request in one line: ranking words, conditions and order.

    Example: words: lease renew · phrase "could not open" · not: toast · from: tom or from: ingrid
    """
    said: list[str] = []
    if parsed.message_ids:
        said.append(f"the message {' or '.join(parsed.message_ids)}, if there is one")
    words = [part for part in parsed.node.parts if only_words(part)]
    if words:
        every = "every word of: " if parsed.request.sort != Sort.relevance else "words: "
        said.append(every + " ".join(_say(part) for part in words))
    said += [_say(part) for part in parsed.node.parts if not only_words(part)]
    if not parsed.ranks:
        said.append("oldest first" if parsed.request.sort == Sort.oldest else "newest first")
    for name, (option, _) in OPTIONS.items():
        value = getattr(parsed.request, option)
        if name in ("mode", "score") and value is not None and parsed.ranks:
            said.append(f"{name}: {value}")
    return " · ".join(said)


def _say(node: Node) -> str:
    match node:
        case And(parts):
            return f"({' and '.join(map(_say, parts))})"
        case Or(parts):
            return f"({' or '.join(map(_say, parts))})"
        case Not(part):
            return f"not: {_say(part).removeprefix('phrase ')}"
        case Field("date", Period(start, end)):
            return (
                f"date: {f'{start} to ' if start else ''}{f'before {end}' if end else 'the newest'}"
            )
        case Field(name, Period() as period):
            return f"{name} {period.start or period.end}"
        case Field(name, value):
            return f"{name}: {value}"
        case Text("phrase", text):
            return f'phrase "{text}"'
        case Text("prefix", text):
            return f"words that begin with {text}"
        case Text(text=text):
            return text
