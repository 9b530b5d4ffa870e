"""Fields as they are checked: a sender as its addresses, a message of a thread as the thread."""

import re
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple, TypeAlias

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.expression import Clause, Condition, Field, Text
from mail_assets.search.hidden_text import HIDDEN
from mail_assets.search.request import RequestError, quote

#: Addresses that a sender filter may match; more says nothing about a person.
MAX_SENDERS = 2_000


class FieldCondition(NamedTuple):
    """A field as it is checked.

    `name` is that of a condition in sql/filters.sql, or "period"; of lists, months, ids,
    senders and threads `value` holds the alternatives.
    """

    name: str
    value: Any = None
    negated: bool = False


#: What a part of a text has that an index of its trigrams can find.
_TRIGRAM = re.compile(r"[^\W_]{3}")

#: Alternatives, of fields and of texts.
MixedClause: TypeAlias = tuple[FieldCondition | Condition, ...]


class ResolvedClause(NamedTuple):
    """Alternatives of which a hit meets one; `always`: every message meets one of them."""

    alternatives: MixedClause
    always: bool = False


#: What PostgreSQL finds by its indexes of lists and days, and of lists and months, as lists alone.
OF_DAYS = frozenset({"months", "period"})
#: Texts that are compared as far as they are shown where addresses are hidden, by their fields.
_SHOWN = {"to": "receiver_name", "subject": "shown_subject", "file": "shown_file"}
SHOWN_TEXTS = frozenset(_SHOWN.values())


def is_indexed(clause: Sequence[FieldCondition]) -> bool:
    """Say whether an index of PostgreSQL finds the messages that meet one of these.

    Those of days or lists alone are not found by it: they are walked.
    """
    found = [_has_index(one) for one in clause]
    by_date = [one.name == "lists" or one.name in OF_DAYS for one in clause]
    return any(found) and all(
        not one.negated and (has or dated)
        for one, has, dated in zip(clause, found, by_date, strict=True)
    )


def _has_index(condition: FieldCondition) -> bool:
    if condition.name in ("senders", "ids", "threads"):
        return True
    parts = condition.name in ("subject", "receiver", "file") or condition.name in SHOWN_TEXTS
    return parts and bool(_TRIGRAM.search(str(condition.value)))


def resolve_clause(
    connection: psycopg.Connection, clause: Clause, *, names_only: bool = False
) -> ResolvedClause:
    """Return a clause with what PostgreSQL knows of its fields; texts stay as they are.

    With `names_only` people are compared by their names, and texts as far as they are shown.

    Raises:
        RequestError: a sender matches too many addresses, or is one where only names count.
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
        if one.value == []:  # nobody is meant: no message meets it, and each meets its opposite
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
            query = statement("field_values", "senders")
            return FieldCondition("senders", _find_senders(connection, str(value), query), negated)
        case "thread":
            return FieldCondition("threads", _find_threads(connection, str(value)), negated)
        case "id":
            return FieldCondition("ids", [value], negated)
        case "to":
            return FieldCondition("receiver", value, negated)
        case "kind":
            return FieldCondition(str(value), None, negated)
    return FieldCondition(field.name, value, negated)


def _resolve_shown(
    connection: psycopg.Connection, field: Field, *, negated: bool
) -> FieldCondition:
    """Return a condition that tells nothing of addresses, whatever its value."""
    value = str(field.value)
    if "@" in value and field.name in ("from", "to"):
        raise RequestError(
            f"addresses are hidden here: {field.name}: takes a part of a name, not {quote(value)}"
        )
    if field.name in _SHOWN:
        return FieldCondition(_SHOWN[field.name], value, negated)
    query = statement("field_values", "senders_by_name")
    return FieldCondition("senders", _find_senders(connection, value, query), negated)


def _find_senders(connection: psycopg.Connection, sender: str, query: LiteralString) -> list[str]:
    """Return the addresses that a sender filter matches, or those beside the names that it does."""
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


def _find_threads(connection: psycopg.Connection, message_id: str) -> list[str]:
    """Return the thread of a message; none where there is no such message."""
    rows = connection.execute(
        statement("field_values", "thread"), {"message_id": message_id}
    ).fetchall()
    return [thread for (thread,) in rows]
