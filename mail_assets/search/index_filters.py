"""The fields of a query as filters of an index: of the vectors, or of the words.

A filter has `$and` and `$or` around single fields, which all backends take; a not becomes the
opposite of its field ($nin, the other side of a day). What an index cannot check is left out, so
that it finds too much and never too little; PostgreSQL decides.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mail_assets.indexes.vectors import MAX_ID, MAX_SENDER
from mail_assets.month import month_number
from mail_assets.search.expression import Period
from mail_assets.search.field_conditions import FieldCondition
from mail_assets.vectors.filters import Filter, count_constraints


class IndexFilter(NamedTuple):
    """What an index checks, None for nothing, and whether that is all that is asked."""

    where: Filter | None
    complete: bool


UNFILTERED = IndexFilter(None, complete=True)


class IndexFields(NamedTuple):
    """What an index keeps of a message, beside list, month and day.

    `flags`: what it has (patch, reply, first, attachment); else `kind` says whether it has a patch.
    `texts`: characters that it keeps of the sender and of the id, None for all.
    """

    flags: bool
    texts: Mapping[str, int | None]


#: Constraints in a filter of the index of words, each value of $in is one: to read it takes 9 us.
MAX_WORD_CONSTRAINTS = 5_000
VECTOR_FIELDS = IndexFields(flags=False, texts={"sender": MAX_SENDER, "message_id": MAX_ID})
WORD_FIELDS = IndexFields(flags=True, texts={"sender": None, "message_id": None})
#: The field of an index that holds the values of a condition.
_TEXTS = {"senders": "sender", "ids": "message_id"}


def build_index_filter(
    clauses: Iterable[Sequence[FieldCondition]], fields: IndexFields, max_constraints: int
) -> IndexFilter:
    """Return what an index checks of some clauses: those that fit into a filter of that length."""
    filters: list[Filter] = []
    complete = True
    for clause in clauses:
        one = _clause_filter(clause, fields)
        count = 0 if one is None else count_constraints(one)
        if one is None or count > max_constraints:
            complete = False
        else:
            filters.append(one)
            max_constraints -= count
    return IndexFilter(all_of(filters), complete)


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """Return a filter that holds where all of some do, None for none."""
    if len(filters) > 1:
        return {"$and": [*filters]}
    return filters[0] if filters else None


def _clause_filter(clause: Iterable[FieldCondition], fields: IndexFields) -> Filter | None:
    """Return a filter that holds where one of some conditions does, None where one is unknown."""
    alternatives = [_field_filter(one, fields) for one in clause]
    known = [one for one in alternatives if one is not None]
    if len(known) < len(alternatives):
        return None
    return known[0] if len(known) == 1 else {"$or": known}


def _field_filter(condition: FieldCondition, fields: IndexFields) -> Filter | None:
    """Return what an index checks of a condition, None where it cannot."""
    value, negated = condition.value, condition.negated
    among = "$nin" if negated else "$in"
    match condition.name:
        case "lists":
            return {"list": {among: value}}
        case "months":
            return {"month": {among: [month_number(month) for month in value]}}
        case "period":
            return _period_filter(value, negated=negated)
        case "senders" | "ids":
            name = _TEXTS[condition.name]
            known = name in fields.texts
            return _text_filter(name, value, fields.texts[name], negated) if known else None
        case "patch" | "reply" | "first" | "attachment" if fields.flags:
            return {"flags": {among: [condition.name]}}
        case "patch":
            return {"kind": {among: [condition.name]}}
    return None


def _text_filter(
    name: str, values: Sequence[str], longest: int | None, negated: bool
) -> Filter | None:
    kept = sorted({value[:longest] for value in values})
    # A value that is cut would exclude others that begin as it does.
    if negated and kept != sorted(values):
        return None
    return {name: {"$nin" if negated else "$in": kept}}


def _period_filter(period: Period, *, negated: bool) -> Filter:
    sides: list[Filter] = []
    if period.start:
        sides.append({"sent_at": {"$lt" if negated else "$gte": _epoch(period.start)}})
    if period.end:
        sides.append({"sent_at": {"$gte" if negated else "$lt": _epoch(period.end)}})
    if len(sides) == 1:
        return sides[0]
    return {"$or" if negated else "$and": sides}


def _epoch(day: dt.date) -> int:
    """Return the first second of a day in UTC, since 1970."""
    return int(dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp())
