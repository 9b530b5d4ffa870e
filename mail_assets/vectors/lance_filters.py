"""Filters for LanceDB: as SQL predicates, and split by when a search applies them.

LanceDB lists all rows that match a filter before it searches. If three quarters of 548,000 rows
match a date, listing takes 18 ms of processor time, and a search among them 22 ms instead of 9. So
such conditions are applied to the rows that a search has found. Estimates decide how a filter is
applied, never what it matches.

A filter must have passed `check_filter`; its names then need only quotes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from mail_assets.lance.table import Estimates
from mail_assets.vectors.filters import (
    COMPARISONS_SQL,
    LOGIC_SQL,
    ORDER,
    Filter,
    Nested,
    nest_conditions,
)

# Reading a found row takes 25 to 30 us, listing a matching row 0.045 us.
LISTED_WHILE_ONE_IS_READ = 600
# A search asks for SPARE times the rows that it needs if found rows match as often as all rows, and
# for MORE. SPARE allows for the error of a share, 0.03.
SPARE, MORE = 1.3, 10
# From so many texts, $in is written as one text that LanceDB splits: parsing each text takes as
# long as finding it in the index, 3.5 us.
MANY_TEXTS = 100
_BETWEEN = "\n"


def lance_sql(filter: Filter, lists: Collection[str] = ()) -> str:
    """Compile a filter to a Lance predicate; columns have the fields' names.

    A column in `lists` holds several values, and matches if one of them does.
    """
    return _compile(nest_conditions(filter), lists)


def lance_keys_sql(
    keys: Iterable[str], among: Filter | None = None, lists: Collection[str] = ()
) -> str:
    """Compile to a Lance predicate: the key is one of `keys`, and the row matches `among`."""
    within = "" if among is None else f"({lance_sql(among, lists)}) AND "
    return f"{within}key IN ({', '.join(map(lance_literal, keys))})"


def lance_literal(value: object) -> str:
    """Return a string or number as a Lance literal; a quote doubles, nothing else is special."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(float(cast(float, value)))


def _compile(node: Nested, lists: Collection[str]) -> str:
    ((name, condition),) = node.items()
    if name in LOGIC_SQL:
        parts = [_compile(part, lists) for part in cast(Sequence[Nested], condition)]
        return "(" + LOGIC_SQL[name].join(parts) + ")"
    ((op, operand),) = cast(Nested, condition).items()
    column = f"`{name}`"
    if op == "$exists":
        return f"{column} IS {'NOT ' if operand else ''}NULL"
    wanted = cast(Sequence[object], operand if op in ("$in", "$nin") else [operand])
    if op == "$in" and name not in lists and len(wanted) >= MANY_TEXTS and _can_join(wanted):
        joined = _BETWEEN.join(cast(Sequence[str], wanted))
        return f"array_has(string_to_array({lance_literal(joined)}, '{_BETWEEN}'), {column})"
    values = ", ".join(map(lance_literal, wanted))
    if name in lists:
        return f"{'NOT ' if op in ('$ne', '$nin') else ''}array_has_any({column}, [{values}])"
    if op in ("$in", "$nin"):
        return f"{column} {'NOT ' if op == '$nin' else ''}IN ({values})"
    return f"{column} {COMPARISONS_SQL[op]} {values}"


def _can_join(values: Iterable[object]) -> bool:
    return all(isinstance(one, str) and _BETWEEN not in one for one in values)


class Split(NamedTuple):
    """A filter in two: applied before a search, and to the `asked` rows that it finds."""

    before: Filter | None
    after: Filter | None = None
    fields: tuple[str, ...] = ()
    asked: int = 0


async def split_filter(filter: Filter | None, top_k: int, estimates: Estimates) -> Split:
    """Return the cheapest split of a filter in a search for `top_k` rows."""
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
    """Return the share of rows that meet all conditions; fields count as independent."""
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
    for part in cast(Sequence[Nested], condition.get("$and", ())):
        yield from _all_of(part)
    if "$and" not in condition:
        yield condition


def _is_range(condition: Nested) -> bool:
    ((_, test),) = condition.items()
    return isinstance(test, Mapping) and ORDER.keys() >= test.keys()
