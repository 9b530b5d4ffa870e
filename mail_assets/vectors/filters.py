"""The filter language: a subset of S3 Vectors metadata filters, as plain dicts.

    {"list": "pgsql-hackers"}                               a value means $eq
    {"list": {"$in": ["pgsql-hackers", "pgsql-bugs"]}, "month": {"$gte": 202401}}
    {"$or": [{"sender": "tgl@sss.pgh.pa.us"}, {"thread": {"$exists": False}}]}

Operators: $eq $ne $in $nin $exists on all fields, $gt $gte $lt $lte on numbers, $and $or around
filters; several names or operators in one dict mean all of them. A vector without the field
matches only {"$exists": False}, not $ne or $nin. The services differ or do not document this, so
`nest_conditions` makes it explicit.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html

`matches_filter` is the reference for all backends.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, cast

from mail_assets.errors import WrongInputError

FieldType: TypeAlias = Literal["string", "number"]

Filter: TypeAlias = Mapping[str, object]
# One operator on one field, or $and / $or over such: {"month": {"$gte": 202401}}
Nested: TypeAlias = dict[str, object]

# Beyond this float64, the number of JSON, DOUBLE PRECISION and the services, skips integers.
MAX_NUMBER = 2**53

ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_LOGIC = ("$and", "$or")
_OPERATORS = ("$eq", "$ne", *ORDER, "$in", "$nin", "$exists")

#: The operators that compare with one value, and the logic, as SQL.
COMPARISONS_SQL = {"$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
LOGIC_SQL = {"$and": " AND ", "$or": " OR "}


class FilterError(WrongInputError):
    """A filter is malformed or does not fit the index. Names the place and what is allowed."""


class Filterable(Protocol):
    """An index that a filter is checked against: its name, and the types of its fields."""

    @property
    def name(self) -> str:
        """Name for messages."""

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """Types by name."""


def is_number(value: object) -> bool:
    """Return whether `value` is an int or float that every backend keeps: finite, within 2**53."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= MAX_NUMBER  # false for NaN


def is_text(value: object) -> bool:
    """Return whether `value` is a string that every backend keeps: UTF-8, no NUL (Postgres)."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def check_filter(filter: Filter, spec: Filterable) -> None:
    """Refuse a filter that some backend would refuse, misread or ignore.

    Raises:
        FilterError: an empty filter, an unknown operator, a field that is not filterable in `spec`,
            or a value of another type than the field's.
    """
    if not isinstance(filter, Mapping) or not filter:
        raise FilterError(f"{filter!r} is not a filter: use a dict with at least one condition")
    for name, condition in filter.items():
        if name in _LOGIC:
            if not isinstance(condition, list) or not condition:
                raise FilterError(f"{name}: use a non-empty list of filters, not {condition!r}")
            for part in condition:
                check_filter(part, spec)
        elif name not in spec.fields:
            raise FilterError(
                f"{name!r} is not a filterable field of index {spec.name}; "
                f"it has {', '.join(spec.fields)} (and the operators $and, $or)"
            )
        elif condition == {}:
            raise FilterError(f"{name}: the condition is empty")
        else:
            for op, operand in _operators(condition):
                _check_operand(name, spec.fields[name], op, operand)


def check_length(filter: Filter, spec: Filterable, max_constraints: int) -> None:
    """Refuse a filter with more constraints than the backend of an index accepts."""
    count = count_constraints(filter)
    if count > max_constraints:
        raise FilterError(
            f"the filter has {count} constraints (each value of $in is one), and index {spec.name} "
            f"takes {max_constraints}: ask for fewer values at a time"
        )


def matches_filter(filter: Filter, metadata: Mapping[str, object]) -> bool:
    """Return whether `metadata` matches: the meaning that every backend must reproduce."""
    return all(
        _combine(name)(matches_filter(part, metadata) for part in cast(Sequence[Filter], condition))
        if name in _LOGIC
        else all(_holds(metadata.get(name), op, arg) for op, arg in _operators(condition))
        for name, condition in filter.items()
    )


def nest_conditions(filter: Filter) -> Nested:
    """Return the filter with one condition in each dict, which all services read alike.

    Supabase refuses a dict with $and or $or and other names. $ne and $nin get an $exists next to
    them, so that a service's own rule for a missing field does not matter.
    """
    parts: list[Nested] = []
    for name, condition in filter.items():
        if name in _LOGIC:
            parts.append(
                {name: [nest_conditions(part) for part in cast(Sequence[Filter], condition)]}
            )
            continue
        for op, operand in _operators(condition):
            parts.append({name: {op: operand}})
            if op in ("$ne", "$nin"):
                parts.append({name: {"$exists": True}})
    return parts[0] if len(parts) == 1 else {"$and": parts}


def count_constraints(filter: Filter) -> int:
    """Count the constraints of a filter as S3 Vectors does: each value of $in is one."""
    return _count(nest_conditions(filter))


def _count(node: Nested) -> int:
    ((name, condition),) = node.items()
    if name in _LOGIC:
        return sum(map(_count, cast(Sequence[Nested], condition)))
    ((op, operand),) = cast(Nested, condition).items()
    return len(cast(Sequence[object], operand)) if op in ("$in", "$nin") else 1


def _operators(condition: object) -> list[tuple[str, object]]:
    return list(condition.items()) if isinstance(condition, Mapping) else [("$eq", condition)]


def _check_operand(name: str, kind: str, op: str, operand: object) -> None:
    fits = is_number if kind == "number" else is_text
    if op in ("$eq", "$ne") or (op in ORDER and kind == "number"):
        good, wanted = fits(operand), f"a {kind}"
    elif op in ("$in", "$nin"):
        good = isinstance(operand, list) and bool(operand) and all(map(fits, operand))
        wanted = f"a non-empty list, each a {kind}"
    elif op == "$exists":
        good, wanted = isinstance(operand, bool), "true or false"
    elif op in ORDER:
        raise FilterError(f"{name}: {op} compares numbers, and this field holds strings")
    else:
        raise FilterError(f"{name}: unknown operator {op!r}; use one of {', '.join(_OPERATORS)}")
    if not good:
        raise FilterError(f"{name}: {op} takes {wanted}, not {operand!r}")


def _combine(name: str) -> Callable[..., bool]:
    return all if name == "$and" else any


def _holds(value: object, op: str, operand: object) -> bool:
    if op == "$exists":
        return (value is not None) == operand
    if value is None:
        return False
    if op in ORDER:
        return is_number(value) and ORDER[op](cast(float, value), cast(float, operand))
    wanted = cast(Sequence[object], operand) if op in ("$in", "$nin") else [operand]
    # A list matches where one of its items does; True and 1 are not the same value.
    items = value if isinstance(value, list) else [value]
    found = any(
        item == other and isinstance(item, bool) == isinstance(other, bool)
        for item in items
        for other in wanted
    )
    return found == (op in ("$eq", "$in"))
