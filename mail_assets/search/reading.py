"""How a request was understood, in one line of plain words."""

from collections.abc import Sequence

from mail_assets.search.expression import And, Field, Node, Not, Or, Period, Text, only_words
from mail_assets.search.fields import OPTIONS
from mail_assets.search.request import QUOTED, Sort
from mail_assets.search.syntax import ParsedRequest

#: Phrases that are named, of those that nothing was found with.
MAX_NAMED = 3


def describe_request(parsed: ParsedRequest) -> str:
    """Return what ranks, what every hit meets, and how it is sorted.

    words: lease renew · phrase "could not open" · not: toast · from: tom or from: ingrid
    """
    said: list[str] = []
    if parsed.message_ids:
        said.append(f"the message {' or '.join(parsed.message_ids)}, if there is one")
    words = [part for part in parsed.node.parts if only_words(part)]
    if words:
        every = "every word of: " if parsed.request.sort == Sort.date else "words: "
        said.append(every + " ".join(_say(part) for part in words))
    said += [_say(part) for part in parsed.node.parts if not only_words(part)]
    if not parsed.ranks:
        said.append("newest first")
    for name, (option, _) in OPTIONS.items():
        value = getattr(parsed.request, option)
        if name in ("mode", "score") and value is not None and parsed.ranks:
            said.append(f"{name}: {value}")
    return " · ".join(said)


def name_phrases(phrases: Sequence[str]) -> str:
    """Return some phrases in quotes, long ones and long lists cut: "one" and "two" and 3 more."""
    shown = [f'"{one[:QUOTED]}..."' if len(one) > QUOTED else f'"{one}"' for one in phrases]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return " and ".join(shown[:MAX_NAMED]) + more


def _say(node: Node) -> str:
    match node:
        case And(parts):
            return f"({' and '.join(map(_say, parts))})"
        case Or(parts):
            return f"({' or '.join(map(_say, parts))})"
        case Not(part):
            return f"not: {_say(part).removeprefix('phrase ')}"
        case Field(name, Period() as period):
            return _say_period(name, period)
        case Field(name, value):
            return f"{name}: {value}"
        case Text("phrase", text):
            return f'phrase "{text}"'
        case Text("prefix", text):
            return f"words that begin with {text}"
        case Text(text=text):
            return text


def _say_period(name: str, period: Period) -> str:
    if name == "date":
        return f"date: {period.start or ''} to before {period.end or ''}"
    return f"{name} {period.start or period.end}"
