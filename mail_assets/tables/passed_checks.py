"""Which checks have passed on what the months hold now."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement

#: When months were last changed.
Versions = dict[ListMonth, dt.datetime]


class MonthCheck(NamedTuple):
    """A check of an asset; it looks at the months of `months_of`, mostly those of the asset."""

    asset: str
    name: str
    months_of: str


def find_unchecked(connection: psycopg.Connection, check: MonthCheck) -> Versions:
    """Return the months that have changed since the check passed on them.

    A month that was never made is left out.
    """
    rows = connection.execute(statement("passed_checks", "unchecked"), check._asdict()).fetchall()
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def read_versions(
    connection: psycopg.Connection, check: MonthCheck, months: Sequence[ListMonth] | None = None
) -> Versions:
    """Return when each month that a check looks at last changed, of some months or of all."""
    values = {"months_of": check.months_of, **_columns(months)}
    rows = connection.execute(statement("passed_checks", "versions"), values).fetchall()
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def record_passed(connection: psycopg.Connection, check: MonthCheck, passed: Versions) -> None:
    """Record that a check has passed on months as they were at a time of `Versions`."""
    values = {**check._asdict(), **_columns([*passed]), "versions": [*passed.values()]}
    connection.execute(statement("passed_checks", "record"), values)


def read_passed(
    connection: psycopg.Connection, lists: Collection[str]
) -> Mapping[ListMonth, set[tuple[str, str]]]:
    """Return (asset, check) of all checks that have passed on what months of lists hold now."""
    rows = connection.execute(statement("passed_checks", "passed"), {"lists": [*lists]})
    passed: dict[ListMonth, set[tuple[str, str]]] = defaultdict(set)
    for list_name, month, asset, name in rows:
        passed[ListMonth(list_name, month)].add((asset, name))
    return passed


def _columns(months: Sequence[ListMonth] | None) -> dict[str, list[str] | None]:
    if months is None:
        return {"lists": None, "months": None}
    return {"lists": [m.list_name for m in months], "months": [m.month for m in months]}
