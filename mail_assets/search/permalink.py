"""A request as one string: a query that asks for the same again."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from mail_assets.search.expression import And, Field, Node, Not, Or, Text, leaves
from mail_assets.search.fields import EXCLUSIVE, OPTIONS, write_field
from mail_assets.search.request import Request
from mail_assets.search.syntax import ParsedRequest
from mail_assets.search.tokens import Token, is_plain, tokenize


def build_permalink(parsed: ParsedRequest) -> str:
    """Return the query that is read as the same; relative dates become days.

    What is asked in another order has the same: options, conditions, then texts as they stand.
    """
    defaults = {field.name: field.default for field in fields(Request)}
    options = {
        name: value
        for name, (option, _) in OPTIONS.items()
        if (value := getattr(parsed.request, option)) != defaults[option]
    }
    written = [write_field(name, value) for name, value in options.items()]
    return " ".join([*written, _write_all(And((*_sort_conditions(parsed.node),)))]).strip()


def _sort_conditions(node: And) -> Iterator[Node]:
    """Yield the parts without a text, each once, in the order of the alphabet; then the others."""
    conditions = {part: _write(part) for part in node.parts if not _has_text(part)}
    yield from sorted(
        conditions, key=lambda part: (conditions[part].lstrip("(-"), conditions[part])
    )
    yield from filter(_has_text, node.parts)


def _has_text(node: Node) -> bool:
    return any(isinstance(leaf, Text) for leaf in leaves(node))


def _write_all(node: And) -> str:
    """Return all parts; of a field that would become an alternative, each in parentheses."""
    names = Counter(part.name for part in node.parts if isinstance(part, Field))
    alone = {name for name in EXCLUSIVE if names[name] > 1}
    return " ".join(
        _in_parentheses(_write(part))
        if isinstance(part, Field) and part.name in alone
        else _write(part)
        for part in node.parts
    )


def _in_parentheses(written: str) -> str:
    """Return a group; its end is kept off a word that would take it for its own.

    A Message-ID in brackets is one only before a space or the end.
    """
    last = written.rpartition(" ")[2]
    takes = last.count("(") > last.count(")") or last.endswith(">")
    return f"({written} )" if takes else f"({written})"


def _write(node: Node) -> str:
    match node:
        case And():
            return _in_parentheses(_write_all(node))
        case Or(parts):
            return _in_parentheses(" OR ".join(map(_write, parts)))
        case Not(Text("phrase", text)) if _is_excluded_alone(text):
            return f"-{text}"
        case Not(part):
            written = _write(part)  # of two dashes neither would be a not
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
    """Say whether a dash before a text, without quotes, is read as a not before all of it."""
    return tokenize(f"-{text}") == [Token("not", "-"), Token("word", text)]
