"""Fields of a query as SQL conditions, and as filters of the vector index and the word index.

PostgreSQL resolves the values: a sender to addresses, a message of a thread to the thread. A filter
of an index has `$and` and `$or` around single fields, which all backends accept; a not becomes the
opposite of its field ($nin, the other side of a day). Conditions that an index cannot check are
left out: the index then finds too much, never too little, and PostgreSQL decides.

Where addresses are hidden, conditions on parts of names and subjects must not see addresses: a
pattern in PostgreSQL removes them. Web pages use the same one (mail/message/text_addresses.py).
"""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple, TypeAlias
from weakref import WeakSet

import psycopg

from mail_assets.indexes.vectors import MAX_ID, MAX_SENDER
from mail_assets.mail.message.text_addresses import ADDRESSES, HINTS, SIGNS
from mail_assets.month import month_number
from mail_assets.postgres.statements import read_column, statement
from mail_assets.search.language.expression import Clause, Condition, Field, Period, Text
from mail_assets.search.language.request import RequestError, quote
from mail_assets.vectors.filters import Filter, count_constraints

#: Parameters of conditions that remove addresses from texts.
HIDDEN = {"hints": HINTS, "signs": SIGNS, "addresses": ADDRESSES}

#: Sessions in which PostgreSQL has compiled the address pattern.
_COMPILED: WeakSet[psycopg.Connection] = WeakSet()

#: Most addresses that a sender may match; more cannot be one person.
MAX_SENDERS = 2_000
#: Conditions that PostgreSQL indexes together with the list: days and months of lists.
OF_DAYS = frozenset({"months", "period"})
#: Conditions of fields where addresses are hidden: every field whose text may contain one.
_SHOWN = {"to": "receiver_name", "subject": "shown_subject", "file": "shown_file"}
SHOWN_TEXTS = frozenset(_SHOWN.values())
#: Looser conditions that need a tenth of the time. They find the same messages, and a few more with
#: a disguised address.
_LOOSE = {"receiver_name": "receiver_part", "shown_subject": "subject", "shown_file": "file"}
#: Most patches of a state that index filters name; for more, the state is checked on hits.
MAX_PATCHES = 10_000
#: Three letters, which a trigram index needs to find a part of a text.
_TRIGRAM = re.compile(r"[^\W_]{3}")


class FieldCondition(NamedTuple):
    """A resolved field.

    `name` is a condition of sql/filters.sql and its parameter, or "period". An index that does not
    have the field leaves the condition out. For lists, months, ids, senders and threads, `value` is
    a list of alternatives.
    """

    name: str
    value: Any = None
    negated: bool = False


class FilePart(NamedTuple):
    """A part of a file name, with the mail of commits that change such files.

    `changed` has the ids of this mail; None if there are too many: an SQL condition finds them.
    """

    part: str
    changed: tuple[str, ...] | None = ()


#: Alternatives: fields and texts.
MixedClause: TypeAlias = tuple[FieldCondition | Condition, ...]


class ResolvedClause(NamedTuple):
    """Alternatives; a hit meets at least one. `always`: every message does."""

    alternatives: MixedClause
    always: bool = False


def is_indexed(clause: Sequence[FieldCondition]) -> bool:
    """Return whether an index of PostgreSQL finds the messages that meet a clause.

    For days or lists alone it returns False: such messages are walked (by_date.py).
    """
    found = [_has_index(one) for one in clause]
    by_date = [one.name == "lists" or one.name in OF_DAYS for one in clause]
    return any(found) and all(
        not one.negated and (has or dated)
        for one, has, dated in zip(clause, found, by_date, strict=True)
    )


def loosen_clause(clause: Sequence[FieldCondition]) -> list[FieldCondition]:
    """Return a clause that is cheaper to check and that a few more messages may meet."""
    return [one._replace(name=_LOOSE.get(one.name, one.name)) for one in clause]


def find_outside_addresses(part: str) -> str:
    """Return the pattern, for PostgreSQL, of texts with a part of a name outside plain addresses.

    PostgreSQL matches it faster than it removes the addresses from a text.
    """
    before = "" if part[0].isspace() else r"(?:^|\s)[^\s@]*"
    after = "" if part[-1].isspace() else r"[^\s@]*(?:$|\s)"
    return before + re.sub(r"([^\w\s])", r"\\\1", part) + after


def _has_index(condition: FieldCondition) -> bool:
    if condition.name in ("senders", "ids", "threads", "patches"):
        return True
    if isinstance(condition.value, FilePart):
        return condition.value.changed is not None and bool(_TRIGRAM.search(condition.value.part))
    parts = condition.name in ("subject", "receiver") or condition.name in SHOWN_TEXTS
    return parts and bool(_TRIGRAM.search(str(condition.value)))


def resolve_clause(
    connection: psycopg.Connection, clause: Clause, *, names_only: bool = False
) -> ResolvedClause:
    """Resolve the fields of a clause in PostgreSQL; texts stay as they are.

    With `names_only`, people are compared by name, and texts without the addresses in them.

    Raises:
        RequestError: a sender matches too many addresses, or is an address with `names_only`.
    """
    met: list[FieldCondition | Condition] = []
    values: dict[str, list[str]] = {}
    for condition in clause:
        if isinstance(condition.leaf, Text):
            met.append(condition)
            continue
        if names_only and condition.leaf.name in ("from", *_SHOWN):
            one = _resolve_shown(connection, condition.leaf, negated=condition.negated)
        else:
            one = _resolve_field(connection, condition.leaf, negated=condition.negated)
        if one.value == []:  # matches nobody: no message meets it, every message meets its opposite
            if one.negated:
                return ResolvedClause((), always=True)
        elif isinstance(one.value, list) and not one.negated:
            values.setdefault(one.name, []).extend(one.value)
        else:
            met.append(one)
    merged = (FieldCondition(name, sorted({*some})) for name, some in values.items())
    return ResolvedClause((*merged, *met))


def _resolve_field(
    connection: psycopg.Connection, field: Field, *, negated: bool
) -> FieldCondition:
    value = field.value
    match field.name:
        case "list":
            return FieldCondition("lists", [value], negated)
        case "month":
            return FieldCondition("months", [value], negated)
        case "after" | "before" | "date":
            return FieldCondition("period", value, negated)
        case "from":
            query = statement("search", "senders")
            return FieldCondition("senders", _find_senders(connection, str(value), query), negated)
        case "thread":
            # index filters exclude ids only; for other exclusions the indexes are asked for more
            found, query = "threads", statement("search", "thread")
            if negated:
                found, query = "ids", statement("search", "thread_ids")
            rows = connection.execute(query, {"message_id": str(value)})
            return FieldCondition(found, [one for (one,) in rows], negated)
        case "id":
            return FieldCondition("ids", [value], negated)
        case "commit":
            query = statement("search_patches", "commit_ids")
            return FieldCondition("ids", read_column(connection, query, {"prefix": value}), negated)
        case "version":
            return _resolve_state(connection, "latest", negated=negated)
        case "file":
            return _resolve_file(connection, str(value), negated=negated)
        case "to":
            return FieldCondition("receiver", value, negated)
        case "kind" if value in ("applied", "open"):
            return _resolve_state(connection, str(value), negated=negated)
        case "kind":
            return FieldCondition(str(value), None, negated)
    return FieldCondition(field.name, value, negated)


def _resolve_state(connection: psycopg.Connection, state: str, *, negated: bool) -> FieldCondition:
    """Return the condition on a state of patches: their ids, or the state itself if many."""
    query = statement("search_patches", "in_state")
    found = read_column(connection, query, {"state": state, "most": MAX_PATCHES + 1})
    if len(found) > MAX_PATCHES:
        return FieldCondition("state", state, negated)
    return FieldCondition("patches", found, negated)


def _resolve_file(
    connection: psycopg.Connection, part: str, *, negated: bool, shown: bool = False
) -> FieldCondition:
    """Return the condition on a part of a file name; `shown` ignores addresses in it."""
    query = statement("search_patches", "changed_file")
    parameters = {"part": part, "hidden": SIGNS if shown else None, "most": MAX_PATCHES + 1}
    found = read_column(connection, query, parameters)
    changed = None if len(found) > MAX_PATCHES else tuple(found)
    return FieldCondition(_SHOWN["file"] if shown else "file", FilePart(part, changed), negated)


def _resolve_shown(
    connection: psycopg.Connection, field: Field, *, negated: bool
) -> FieldCondition:
    """Return a condition that reveals no address."""
    value = str(field.value)
    if "@" in value and field.name in ("from", "to"):
        raise RequestError(
            f"addresses are hidden here: {field.name}: takes a part of a name, not {quote(value)}"
        )
    _compile_addresses(connection)
    if field.name == "file":
        return _resolve_file(connection, value, negated=negated, shown=True)
    if field.name in _SHOWN:
        return FieldCondition(_SHOWN[field.name], value, negated)
    query = statement("search", "senders_by_name")
    return FieldCondition("senders", _find_senders(connection, value, query), negated)


def _compile_addresses(connection: psycopg.Connection) -> None:
    """Make PostgreSQL compile the address pattern once per session (0.5 seconds of CPU time).

    This runs without a statement timeout. On a busy machine the timeout would cancel it, and the
    next statement would start it again.
    """
    if connection in _COMPILED:
        return
    limit = connection.execute("show statement_timeout").fetchone()
    connection.execute("set statement_timeout = 0")
    try:
        connection.execute(statement("search", "compile_addresses"), HIDDEN)
    finally:
        connection.execute("select set_config('statement_timeout', %s, false)", limit)
    _COMPILED.add(connection)


def _find_senders(connection: psycopg.Connection, sender: str, query: LiteralString) -> list[str]:
    sender = sender.strip()
    words = [*dict.fromkeys(sender.replace(",", " ").split())] or [sender]
    parameters = {
        "sender": sender,
        "words": words,
        "longest": max(words, key=len),
        "most": MAX_SENDERS + 1,
        **HIDDEN,
    }
    rows = connection.execute(query, parameters).fetchall()
    if len(rows) > MAX_SENDERS:
        raise RequestError(
            f"sender {quote(sender)} matches more than {MAX_SENDERS} addresses: give more of it"
        )
    return sorted(address for (address,) in rows)


class IndexFilter(NamedTuple):
    """A filter that an index checks, or None; `complete`: it covers the whole request."""

    where: Filter | None
    complete: bool


UNFILTERED = IndexFilter(None, complete=True)


class IndexFields(NamedTuple):
    """The fields of a message that an index stores in addition to list, month and day.

    With `flags` the index has all kinds (patch, reply, first, attachment); otherwise only `kind`
    (patch). `texts`: how many characters of sender and id it stores; None for all.
    """

    flags: bool
    texts: Mapping[str, int | None]


#: Most constraints in a filter of the word index. Each value of $in is one, and takes 9 us to read.
MAX_WORD_CONSTRAINTS = 5_000
VECTOR_FIELDS = IndexFields(flags=False, texts={"sender": MAX_SENDER, "message_id": MAX_ID})
WORD_FIELDS = IndexFields(flags=True, texts={"sender": None, "message_id": None})
#: The field of an index that a condition compares.
_TEXTS = {"senders": "sender", "ids": "message_id", "patches": "message_id"}


def build_index_filter(
    clauses: Iterable[Sequence[FieldCondition]], fields: IndexFields, max_constraints: int
) -> IndexFilter:
    """Build the filter from the clauses that the index can check, within `max_constraints`."""
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
    """Combine filters with and; None if there are none."""
    if len(filters) > 1:
        return {"$and": [*filters]}
    return filters[0] if filters else None


def _clause_filter(clause: Iterable[FieldCondition], fields: IndexFields) -> Filter | None:
    """Return the filter of alternatives; None if the index cannot check one of them."""
    alternatives = [_field_filter(one, fields) for one in clause]
    known = [one for one in alternatives if one is not None]
    if len(known) < len(alternatives):
        return None
    return known[0] if len(known) == 1 else {"$or": known}


def _field_filter(condition: FieldCondition, fields: IndexFields) -> Filter | None:
    """Return the filter of a condition; None if the index cannot check it."""
    value, negated = condition.value, condition.negated
    among = "$nin" if negated else "$in"
    match condition.name:
        case "lists":
            return {"list": {among: value}}
        case "months":
            return {"month": {among: [month_number(month) for month in value]}}
        case "period":
            return _period_filter(value, negated=negated)
        case "up_to":  # an index stores whole seconds
            return {"sent_at": {"$lt": int(value.timestamp()) + 1}}
        case "from_on":
            return {"sent_at": {"$gte": int(value.timestamp())}}
        case "senders" | "ids" | "patches":
            # an excluded id would also exclude other texts under the same id
            if condition.name == "patches" and negated:
                return None
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
    # Excluding a shortened value would also exclude others with the same beginning.
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
    return int(dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp())
