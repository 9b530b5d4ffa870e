"""Filters as SQL: a predicate for LanceDB, a condition with parameters for Postgres.

A filter must have passed `check_filter`, which leaves no name that needs more than quotes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import cast

from psycopg import sql

from mail_assets.vectors.filters import Filter, Nested, nest_conditions

_SQL = {"$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_LOGIC = {"$and": " AND ", "$or": " OR "}


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
    if name in _LOGIC:
        parts = [_lance(part, lists) for part in cast(Sequence[Nested], condition)]
        return "(" + _LOGIC[name].join(parts) + ")"
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
