"""The filter language: a subset of S3 Vectors metadata filters, as plain dicts.

    {"list": "pgsql-hackers"}                               a value means $eq
    {"list": {"$in": ["pgsql-hackers", "pgsql-bugs"]}, "month": {"$gte": 202401}}
    {"$or": [{"sender": "tgl@sss.pgh.pa.us"}, {"thread": {"$exists": False}}]}

Operators: $eq $ne $in $nin $exists on all fields, $gt $gte $lt $lte on numbers, $and $or around
filters; several names or operators in one dict mean all of them. A vector without the field
matches only {"$exists": False}: not $ne, not $nin. (The services differ or are silent on this;
`nested` spells it out for them.)
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html

Here: the check against an index, the reference matcher, and one compiler per backend.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from psycopg import sql

if TYPE_CHECKING:
    from mail_assets.vectors.index import IndexSpec

Filter: TypeAlias = Mapping[str, object]
# One operator on one field, or $and / $or over such: {"month": {"$gte": 202401}}
Nested: TypeAlias = dict[str, object]

# Beyond this float64, the number of JSON, DOUBLE PRECISION and the services, skips integers.
MAX_NUMBER = 2**53

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_SQL = {"$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_LOGIC = {"$and": " AND ", "$or": " OR "}


class FilterError(ValueError):
    """A filter that is malformed or does not fit the index; says where and what is allowed."""


def is_number(value: object) -> bool:
    """Say whether `value` is an int or float that every backend keeps: finite, within 2**53."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return math.isfinite(value) and abs(value) <= MAX_NUMBER


def is_text(value: object) -> bool:
    """Say whether `value` is a string that every backend keeps: UTF-8 and, for Postgres, no NUL."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def check(filter: Filter, spec: IndexSpec) -> None:
    """Refuse a filter that some backend would refuse, misread or ignore.

    Raises:
        FilterError: for an empty filter, an unknown operator, a field that is not filterable in
            `spec`, a value of another type than the field's.
    """
    if not isinstance(filter, Mapping) or not filter:
        raise FilterError(f"{filter!r} is not a filter: use a dict with at least one condition")
    for name, condition in filter.items():
        if name in _LOGIC:
            if not isinstance(condition, list) or not condition:
                raise FilterError(f"{name}: use a non-empty list of filters, not {condition!r}")
            for part in condition:
                check(part, spec)
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


def matches(filter: Filter, metadata: Mapping[str, object]) -> bool:
    """Say whether `metadata` matches: the meaning that every backend must reproduce."""
    return all(
        _combine(name)(matches(part, metadata) for part in cast(Sequence[Filter], condition))
        if name in _LOGIC
        else all(_holds(metadata.get(name), op, arg) for op, arg in _operators(condition))
        for name, condition in filter.items()
    )


def nested(filter: Filter) -> Nested:
    """Return the filter with one condition in each dict, as the services agree on it.

    Supabase refuses $and or $or beside other names. $ne and $nin get an $exists beside them, so
    that no service's idea of a missing field matters.
    """
    parts: list[Nested] = []
    for name, condition in filter.items():
        if name in _LOGIC:
            parts.append({name: [nested(part) for part in cast(Sequence[Filter], condition)]})
            continue
        for op, operand in _operators(condition):
            parts.append({name: {op: operand}})
            if op in ("$ne", "$nin"):
                parts.append({name: {"$exists": True}})
    return parts[0] if len(parts) == 1 else {"$and": parts}


def lance_sql(filter: Filter) -> str:
    """Compile a checked filter to a Lance predicate; columns are named as the fields."""
    return _lance(nested(filter))


def postgres_sql(filter: Filter) -> tuple[sql.Composable, list[object]]:
    """Compile a checked filter to a Postgres condition and its parameters.

    Columns are named as the fields, of type text or double precision.
    """
    parameters: list[object] = []
    return _postgres(nested(filter), parameters), parameters


def _operators(condition: object) -> list[tuple[str, object]]:
    return list(condition.items()) if isinstance(condition, Mapping) else [("$eq", condition)]


def _check_operand(name: str, kind: str, op: str, operand: object) -> None:
    fits = is_number if kind == "number" else is_text
    if op in ("$eq", "$ne") or (op in _ORDER and kind == "number"):
        good, wanted = fits(operand), f"a {kind}"
    elif op in ("$in", "$nin"):
        good = isinstance(operand, list) and bool(operand) and all(map(fits, operand))
        wanted = f"a non-empty list, each a {kind}"
    elif op == "$exists":
        good, wanted = isinstance(operand, bool), "true or false"
    elif op in _ORDER:
        raise FilterError(f"{name}: {op} compares numbers, and this field holds strings")
    else:
        known = ", ".join([*_SQL, "$in", "$nin", "$exists"])
        raise FilterError(f"{name}: unknown operator {op!r}; use one of {known}")
    if not good:
        raise FilterError(f"{name}: {op} takes {wanted}, not {operand!r}")


def _combine(name: str) -> Callable[..., bool]:
    return all if name == "$and" else any


def _holds(value: object, op: str, operand: object) -> bool:
    if op == "$exists":
        return (value is not None) == operand
    if value is None:
        return False
    if op in _ORDER:
        return is_number(value) and _ORDER[op](cast(float, value), cast(float, operand))
    wanted = cast(Sequence[object], operand) if op in ("$in", "$nin") else [operand]
    # A list matches where one of its items does; True and 1 are not the same value.
    items = value if isinstance(value, list) else [value]
    found = any(
        item == other and isinstance(item, bool) == isinstance(other, bool)
        for item in items
        for other in wanted
    )
    return found == (op in ("$eq", "$in"))


def _lance(node: Nested) -> str:
    ((name, condition),) = node.items()
    if name in _LOGIC:
        parts = [_lance(part) for part in cast(Sequence[Nested], condition)]
        return "(" + _LOGIC[name].join(parts) + ")"
    ((op, operand),) = cast(Nested, condition).items()
    column = f"`{name}`"
    if op == "$exists":
        return f"{column} IS {'NOT ' if operand else ''}NULL"
    if op in ("$in", "$nin"):
        values = ", ".join(map(lance_literal, cast(Sequence[object], operand)))
        return f"{column} {'NOT ' if op == '$nin' else ''}IN ({values})"
    return f"{column} {_SQL[op]} {lance_literal(operand)}"


def lance_literal(value: object) -> str:
    """Return a string or number as a Lance literal; a quote doubles, nothing else is special."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(float(cast(float, value)))


def _postgres(node: Nested, parameters: list[object]) -> sql.Composable:
    ((name, condition),) = node.items()
    if name in _LOGIC:
        parts = [_postgres(part, parameters) for part in cast(Sequence[Nested], condition)]
        return sql.SQL("({})").format(sql.SQL(_LOGIC[name]).join(parts))
    ((op, operand),) = cast(Nested, condition).items()
    column = sql.Identifier(name)
    if op == "$exists":
        return sql.SQL("{} IS NOT NULL" if operand else "{} IS NULL").format(column)
    if op in ("$in", "$nin"):
        parameters.append([_parameter(value) for value in cast(Sequence[object], operand)])
        return sql.SQL("{} = ANY(%s)" if op == "$in" else "{} <> ALL(%s)").format(column)
    parameters.append(_parameter(operand))
    return sql.SQL(f"{{}} {_SQL[op]} %s").format(column)


def _parameter(value: object) -> object:
    return float(value) if isinstance(value, int) else value
