"""Regular expressions of the package, and hostile texts made from their structure.

A pattern is slow on some text if one of its repetitions can start at many places, or can share
characters with a neighbour in many ways. So the attacks on a pattern pump its own repetitions: the
text that leads to a repetition, the repeated text many times, and an end that does not match. Other
attacks repeat the lead, because a search starts at each copy of it.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import mail_assets

#: Bounded repetitions below this limit only multiply the time by a constant: they are not pumped.
LONG = 40

#: Characters to sample a class with, in addition to its own members.
PROBES = "a0 \t\n@.<>|-_:\"'([é\x00"

#: Characters of a pattern that are tried in pairs.
SIGNS = 12

#: Ends of attacks, which most repetitions do not match.
ENDS = ("", "\x00", "\n!", "\n\n")

#: Functions and methods that try a pattern at one position only.
ANCHORED = {"match", "fullmatch"}


class Use(NamedTuple):
    """A pattern; it may be tried at every position of a text."""

    place: str
    pattern: re.Pattern[Any]
    searches: bool


class Attack(NamedTuple):
    """Text that grows with n: `lead`, n times `unit`, `end`."""

    lead: str
    unit: str
    end: str

    def text(self, size: int) -> str:
        """Return the attack in about `size` characters, at least one unit."""
        return self.lead + self.unit * max(1, size // len(self.unit)) + self.end


def find_patterns() -> list[Use]:
    """Return all patterns of the package: compiled in a module or literal in a call of `re`."""
    found: dict[tuple[str | bytes, int], Use] = {}
    for module in _modules():
        tree = ast.parse(_source(module))
        methods = _methods(tree)
        for name, value in vars(module).items():
            for pattern in _compiled(value):
                searches = not methods.get(name, {"search"}) <= ANCHORED
                _add(found, Use(f"{module.__name__}.{name}", pattern, searches))
        for call, function in _direct_calls(tree):
            place = f"{module.__name__}:{call.lineno}"
            literal = ast.literal_eval(call.args[0])
            _add(found, Use(place, re.compile(literal), function not in ANCHORED))
    return sorted(found.values(), key=lambda use: use.place)


def _add(found: dict[tuple[str | bytes, int], Use], use: Use) -> None:
    key = (use.pattern.pattern, use.pattern.flags)
    if key not in found or use.searches:
        found[key] = use


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(mail_assets.__path__, "mail_assets."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _source(module: ModuleType) -> str:
    assert module.__spec__ is not None
    assert module.__spec__.origin is not None
    return Path(module.__spec__.origin).read_text(encoding="utf-8")


def _compiled(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a module's value, in its containers and its objects' fields.

    Patterns that are compiled at first use are left out, also if they were used before. Code tries
    them within bounds, and the tests of their module have hostile texts.
    """
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4:
        inside: Iterable[object] = ()
        ours = type(value).__module__.startswith("mail_assets")
        if isinstance(value, dict):
            inside = (*value.keys(), *value.values())
        elif type(value) in (list, tuple, set, frozenset) or (ours and isinstance(value, tuple)):
            inside = value  # type: ignore[assignment]
        elif ours and hasattr(value, "__dict__") and not hasattr(type(value), "compiled"):
            inside = vars(value).values()
        for one in inside:
            yield from _compiled(one, depth + 1)


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    """Return NAME -> the methods of it that a module uses."""
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
    return methods


def _direct_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls such as re.sub("...", ...) with a literal pattern."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr != "compile"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node, node.func.attr


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """Return the distinct attacks on a pattern."""
    flags = pattern.flags & ~re.DEBUG
    leads = dict.fromkeys(_leads(parser.parse(pattern.pattern, flags), ""))
    found: dict[Attack, None] = {}
    for lead, pump in leads:
        for end in ENDS:
            found[Attack(lead, pump, end)] = None
            found[Attack("", lead + pump, end)] = None
            if lead:
                found[Attack("", lead, end)] = None
    for unit in _pairs(pattern.pattern):
        found[Attack("", unit, "")] = None
    return [*found]


def _pairs(pattern: str | bytes) -> Iterator[str]:
    """Yield pairs of a pattern's characters: backslash and quote, quote and bracket."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    signs = [char for char in dict.fromkeys(text) if not char.isalnum()][:SIGNS]
    yield from (first + second for first in signs for second in signs)


def _leads(items: Any, lead: str) -> Iterator[tuple[str, str]]:
    """Yield the lead of each long repetition, and its body."""
    for code, value in items:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _, most, body = value
            if most == op.MAXREPEAT or most >= LONG:
                for pump in _samples(body):
                    yield lead, pump
            yield from _leads(body, lead)
        elif code is op.SUBPATTERN:
            yield from _leads(value[3], lead)
        elif code is op.ATOMIC_GROUP:
            yield from _leads(value, lead)
        elif code is op.BRANCH:
            for branch in value[1]:
                yield from _leads(branch, lead)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _leads(value[1], lead)
            continue
        lead += _sample([(code, value)])


def _samples(body: Any) -> set[str]:
    """Return texts matched by a repeated body, one for each kind of character in it."""
    if len(body) == 1 and body[0][0] in (op.IN, op.ANY, op.NOT_LITERAL):
        return set(_members(*body[0]))
    if len(body) == 1 and body[0][0] is op.BRANCH:
        return {sample for branch in body[0][1][1] if (sample := _sample(branch))}
    if len(body) == 1 and body[0][0] is op.SUBPATTERN:
        return _samples(body[0][1][3])
    sample = _sample(body)
    return {sample} if sample else set()


def _sample(items: Any) -> str:
    """Return a short text matched by a sequence, without its look-arounds."""
    text = ""
    for code, value in items:
        if code is op.LITERAL:
            text += chr(value)
        elif code in (op.IN, op.ANY, op.NOT_LITERAL):
            text += next(iter(_members(code, value)), "")
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * max(value[0], 1)
        elif code is op.SUBPATTERN:
            text += _sample(value[3])
        elif code is op.ATOMIC_GROUP:
            text += _sample(value)
        elif code is op.BRANCH:
            text += _sample(value[1][0])
    return text


def _members(code: Any, value: Any) -> list[str]:
    """Return some characters of a class: of the probes, and the ends of its own ranges."""
    node = [(code, value)]
    single = parser.SubPattern(parser.State(), node)
    own = [char for pair in (value if code is op.IN else []) for char in _ends(*pair)]
    one = re._compiler.compile(single, re.DOTALL)  # type: ignore[attr-defined]
    return [char for char in dict.fromkeys([*own, *PROBES]) if one.fullmatch(char)][:8]


def _ends(code: Any, value: Any) -> list[str]:
    if code is op.LITERAL:
        return [chr(value)]
    if code is op.RANGE:
        return [chr(value[0])]
    return []
