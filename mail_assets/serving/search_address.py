"""The address of a search: one for all requests that ask the same.

It is `/search?q=QUERY`, all that is asked written in the query language with its dates as days, and
`offset` where it is not the first page. The form of a page shows what its fields have room for in
these, as Gmail's does, so that a search looks the same however one came to it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from mail_assets.search.language.expression import And, Field, Node, Or, Period, held_phrases
from mail_assets.search.language.fields import EXCLUSIVE
from mail_assets.search.language.permalink import build_permalink
from mail_assets.search.language.request import Group, Mode, Sort
from mail_assets.search.language.syntax import ParsedRequest, loosen, parse_request
from mail_assets.serving.parameters import make_request, read_parameters

#: Fields of the query that the form has a field for, by its name.
_CONTROLS = {"list": "list", "after": "after", "before": "before", "from": "sender"}
#: Options that the form has, and what they are where nothing is said.
OPTIONS = {
    "mode": Mode.hybrid.value,
    "group": Group.few.value,
    "sort": Sort.relevance.value,
}
HOME = "/"
#: The parameters of an address.
ADDRESS = frozenset({"q", "offset"})


def find_address(parsed: ParsedRequest, **options: Any) -> str:
    """Return the address of a search, or that of one with other options."""
    return _write_url(_address_parameters(parsed, **options))


def find_other_address(given: Mapping[str, str]) -> str | None:
    """Return the address of what some parameters ask, None where they are those of the address.

    Raises:
        RequestError, ServingError: a parameter is wrong.
    """
    parameters = read_parameters(given)
    if not parameters:
        return HOME
    wanted = _address_parameters(parse_request(make_request(parameters)))
    return None if wanted == {**given} else _write_url(wanted)


def refine(parsed: ParsedRequest, condition: Field) -> str:
    """Return the address of a search with one more condition.

    It takes the place of those of its kind of which a message can meet only one: months are chosen
    one after another.
    """
    kept = [part for part in parsed.node.parts if not _is_replaced(part, condition)]
    return _change_parts(parsed, [condition, *kept])


def drop_filters(parsed: ParsedRequest) -> str | None:
    """Return the address without what the form's fields filter, None where that is all."""
    filled, rest = _split(parsed)
    return _change_parts(parsed, rest) if filled and rest else None


def drop_quotes(parsed: ParsedRequest) -> str | None:
    """Return the address with the words of phrases instead, None where there is no phrase."""
    if not held_phrases(parsed.node):
        return None
    return _change_parts(parsed, loosen(parsed).node.parts)


def fill_form(parsed: ParsedRequest) -> dict[str, str]:
    """Return what the fields of the form show of a search; sent again, they ask for the same."""
    filled, rest = _split(parsed)
    options = {name: str(getattr(parsed.request, name)) for name in OPTIONS}
    plain: dict[str, Any] = {"offset": 0, **OPTIONS}
    node, request = And((*rest,)), replace(parsed.request, **plain)
    box = build_permalink(replace(parsed, node=node, request=request))
    return {"q": box, **filled, **options}


def _split(parsed: ParsedRequest) -> tuple[dict[str, str], list[Node]]:
    """Return the values of the form's fields, and what is for the box."""
    parts = parsed.node.parts
    times = Counter(part.name for part in parts if isinstance(part, Field))
    filled: dict[str, str] = {}
    rest: list[Node] = []
    for part in parts:
        if isinstance(part, Field) and part.name in _CONTROLS and times[part.name] == 1:
            value = part.value
            day = (value.start or value.end) if isinstance(value, Period) else None
            filled[_CONTROLS[part.name]] = str(day or value)
        else:
            rest.append(part)
    return filled, rest


def _address_parameters(parsed: ParsedRequest, **options: Any) -> dict[str, str]:
    request = replace(parsed.request, **options)
    query = build_permalink(replace(parsed, request=replace(request, offset=0)))
    return {"q": query} | ({"offset": str(request.offset)} if request.offset else {})


def _write_url(parameters: Mapping[str, str]) -> str:
    return f"/search?{urlencode(parameters)}"


def _change_parts(parsed: ParsedRequest, parts: Sequence[Node]) -> str:
    return find_address(replace(parsed, node=And((*parts,))), offset=0)


def _is_replaced(part: Node, condition: Field) -> bool:
    if condition.name not in EXCLUSIVE:
        return False
    leaves = part.parts if isinstance(part, Or | And) else (part,)
    return all(isinstance(leaf, Field) and leaf.name == condition.name for leaf in leaves)
