"""The filter language: a subset of S3 Vectors metadata filters, as plain dicts.

    {"list": "pgsql-hackers"}                               a value means $eq
    {"list": {"$in": ["pgsql-hackers", "pgsql-bugs"]}, "month": {"$gte": 202401}}
    {"$or": [{"sender": "tgl@sss.pgh.pa.us"}, {"thread": {"$exists": False}}]}

Operators: $eq $ne $in $nin $exists on all fields, $gt $gte $lt $lte on numbers, $and $or around
filters; several names or operators in one dict mean all of them. A vector without the field
matches only {"$exists": False}: not $ne, not $nin. (The services differ or are silent on this;
`nest_conditions` spells it out for them.)
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html

A filter is checked against an index, has a reference matcher, and a form that the services take;
backends with tables take SQL (`filter_sql`).

[spec] The spec of a vector index: its name, its dimension and its metadata fields.

[filter_sql] Filters as SQL: a predicate for LanceDB, a condition with parameters for Postgres.

A filter must have passed `check_filter`, which leaves no name that needs more than quotes.

[filter_split] Split a filter: what LanceDB applies before a search, and what is applied to what it finds.

LanceDB lists all rows that match a filter before it searches. That of a date which three quarters
of 548,000 rows meet takes 18 ms of the processor, and a search among them 22 instead of 9; so such
conditions are applied to what a search finds. Estimates decide how a filter is applied, and never
what it matches.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from psycopg import sql

from mail_assets.errors import WrongInputError
from mail_assets.lance.table import Estimates

FieldType: TypeAlias = Literal["string", "number"]

# The narrower of AWS S3 Vectors and Supabase Vector Buckets in each case.
MAX_DIMENSION = 4096
MAX_FIELDS = 50
MAX_NON_FILTERABLE = 10

_INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,43}[a-z0-9]", re.ASCII)
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
# Columns of the backends with tables.
_RESERVED = frozenset({"key", "vector", "embedding", "distance"})


@dataclass(frozen=True)
class IndexSpec:
    """Name, dimension and metadata fields of an index; no backend can alter them later.

    `fields` are the filterable metadata, `non_filterable` what is only carried along. Metadata
    under any other name is refused.

    Raises:
        ValueError: for a name, dimension or field that some backend could not hold.
    """

    name: str
    dimension: int
    fields: Mapping[str, FieldType]
    non_filterable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _INDEX_NAME.fullmatch(self.name):
            raise ValueError(
                f"index name {self.name!r}: use 3 to 45 of a-z, 0-9, '.' and '-', "
                "with a letter or digit at both ends"
            )
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise ValueError(
                f"index {self.name}: dimension {self.dimension} is not in 1..{MAX_DIMENSION}"
            )
        names = [*self.fields, *self.non_filterable]
        for name in names:
            if not _FIELD_NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(
                    f"index {self.name}: metadata field {name!r}: use up to 63 of a-z, 0-9 and "
                    f"'_', starting with a letter, other than {', '.join(sorted(_RESERVED))}"
                )
        if len(set(names)) < len(names):
            raise ValueError(f"index {self.name}: a metadata field is declared twice: {names}")
        if len(names) > MAX_FIELDS or len(self.non_filterable) > MAX_NON_FILTERABLE:
            raise ValueError(
                f"index {self.name}: {len(names)} metadata fields, {len(self.non_filterable)} of "
                f"them not filterable; the limits are {MAX_FIELDS} and {MAX_NON_FILTERABLE}"
            )
        for name, kind in self.fields.items():
            if kind not in ("string", "number"):
                raise ValueError(f"index {self.name}: field {name}: no such type as {kind!r}")


Filter: TypeAlias = Mapping[str, object]
# One operator on one field, or $and / $or over such: {"month": {"$gte": 202401}}
Nested: TypeAlias = dict[str, object]

# Beyond this float64, the number of JSON, DOUBLE PRECISION and the services, skips integers.
MAX_NUMBER = 2**53

#: Operators on numbers.
ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_LOGIC = ("$and", "$or")
_OPERATORS = ("$eq", "$ne", *ORDER, "$in", "$nin", "$exists")


class FilterError(WrongInputError):
    """A filter that is malformed or does not fit the index; says where and what is allowed."""


class Filterable(Protocol):
    """What a filter is checked against: an index by its name, with the types of its fields."""

    @property
    def name(self) -> str:
        """The name, for messages."""

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The types by name."""


def is_number(value: object) -> bool:
    """Say whether `value` is an int or float that every backend keeps: finite, within 2**53."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= MAX_NUMBER  # false for NaN


def is_text(value: object) -> bool:
    """Say whether `value` is a string that every backend keeps: UTF-8 and, for Postgres, no NUL."""
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
    """Refuse a filter with more constraints than the backend of an index takes.

    Raises:
        FilterError: how many there are, and how many it takes.
    """
    count = count_constraints(filter)
    if count > max_constraints:
        raise FilterError(
            f"the filter has {count} constraints (each value of $in is one), and index {spec.name} "
            f"takes {max_constraints}: ask for fewer values at a time"
        )


def matches_filter(filter: Filter, metadata: Mapping[str, object]) -> bool:
    """Say whether `metadata` matches: the meaning that every backend must reproduce."""
    return all(
        _combine(name)(matches_filter(part, metadata) for part in cast(Sequence[Filter], condition))
        if name in _LOGIC
        else all(_holds(metadata.get(name), op, arg) for op, arg in _operators(condition))
        for name, condition in filter.items()
    )


def nest_conditions(filter: Filter) -> Nested:
    """Return the filter with one condition in each dict, as the services agree on it.

    Supabase refuses $and or $or beside other names. $ne and $nin get an $exists beside them, so
    that no service's idea of a missing field matters.
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
    """Return how many constraints a filter has, as S3 Vectors counts: each value of $in is one."""
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


_SQL = {"$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_LOGIC_SQL = {"$and": " AND ", "$or": " OR "}


def lance_sql(filter: Filter, lists: Collection[str] = ()) -> str:
    """Compile a checked filter to a Lance predicate; columns are named as the fields.

    A column of `lists` holds several values, and matches where one of them does.
    """
    return _lance(nest_conditions(filter), lists)


def lance_keys_sql(
    keys: Iterable[str], among: Filter | None = None, lists: Collection[str] = ()
) -> str:
    """Compile to a Lance predicate that a key is one of these, in what a checked filter matches."""
    within = "" if among is None else f"({lance_sql(among, lists)}) AND "
    return f"{within}key IN ({', '.join(map(lance_literal, keys))})"


def postgres_sql(filter: Filter) -> tuple[sql.Composable, list[object]]:
    """Compile a checked filter to a Postgres condition and its parameters.

    Columns are named as the fields, of type text or double precision.
    """
    parameters: list[object] = []
    return _postgres(nest_conditions(filter), parameters), parameters


def lance_literal(value: object) -> str:
    """Return a string or number as a Lance literal; a quote doubles, nothing else is special."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(float(cast(float, value)))


def _lance(node: Nested, lists: Collection[str]) -> str:
    ((name, condition),) = node.items()
    if name in _LOGIC_SQL:
        parts = [_lance(part, lists) for part in cast(Sequence[Nested], condition)]
        return "(" + _LOGIC_SQL[name].join(parts) + ")"
    ((op, operand),) = cast(Nested, condition).items()
    column = f"`{name}`"
    if op == "$exists":
        return f"{column} IS {'NOT ' if operand else ''}NULL"
    if name in lists:
        wanted = operand if op in ("$in", "$nin") else [operand]
        values = ", ".join(map(lance_literal, cast(Sequence[object], wanted)))
        return f"{'NOT ' if op in ('$ne', '$nin') else ''}array_has_any({column}, [{values}])"
    if op in ("$in", "$nin"):
        values = ", ".join(map(lance_literal, cast(Sequence[object], operand)))
        return f"{column} {'NOT ' if op == '$nin' else ''}IN ({values})"
    return f"{column} {_SQL[op]} {lance_literal(operand)}"


def _postgres(node: Nested, parameters: list[object]) -> sql.Composable:
    ((name, condition),) = node.items()
    if name in _LOGIC_SQL:
        parts = [_postgres(part, parameters) for part in cast(Sequence[Nested], condition)]
        return sql.SQL("({})").format(sql.SQL(_LOGIC_SQL[name]).join(parts))
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


# To read a row that was found takes 25 to 30 us, to list one that matches 0.045.
LISTED_WHILE_ONE_IS_READ = 600
# What a search is asked for of what it takes if the rows it finds meet a condition as all rows do;
# a share is known to 0.03, which SPARE allows for.
SPARE, MORE = 1.3, 10


class Split(NamedTuple):
    """A filter in two: what is applied before a search, and after it with how many to ask for."""

    before: Filter | None
    after: Filter | None = None
    fields: tuple[str, ...] = ()
    asked: int = 0


async def split_filter(filter: Filter | None, top_k: int, estimates: Estimates) -> Split:
    """Return how a filter is applied in a search for so many rows, by what takes less."""
    if filter is None or estimates.rows <= MORE * LISTED_WHILE_ONE_IS_READ:
        return Split(filter)
    parts = [*_all_of(nest_conditions(filter))]
    ranges = [part for part in parts if _is_range(part)]
    share = await _estimate_share(ranges, estimates)
    if not share:
        return Split(filter)
    asked = math.ceil(SPARE * top_k / share) + MORE
    if (asked - top_k) * LISTED_WHILE_ONE_IS_READ >= share * estimates.rows:
        return Split(filter)
    before = [part for part in parts if part not in ranges]
    fields = dict.fromkeys(name for part in ranges for name in part)
    return Split({"$and": before} if before else None, {"$and": ranges}, (*fields,), asked)


async def _estimate_share(ranges: Sequence[Nested], estimates: Estimates) -> float:
    """Return the share of the rows that meet all conditions, taken as independent by field."""
    share = 1.0 if ranges else 0.0
    for field in {name for part in ranges for name in part}:
        values = await estimates.read_sample(field)
        met = np.ones(len(values), bool)
        for part in ranges:
            for op, operand in cast(Nested, part.get(field, {})).items():
                met &= cast(Any, ORDER[op])(values, operand)
        share *= np.count_nonzero(met) / max(1, len(values))
    return share


def _all_of(condition: Nested) -> Iterator[Nested]:
    """Yield the conditions that all have to be met."""
    for part in cast(Sequence[Nested], condition.get("$and", ())):
        yield from _all_of(part)
    if "$and" not in condition:
        yield condition


def _is_range(condition: Nested) -> bool:
    """Say whether a condition is that a number is beyond another."""
    ((_, test),) = condition.items()
    return isinstance(test, Mapping) and ORDER.keys() >= test.keys()
