"""The conditions of a request, compiled for PostgreSQL, the vector index and the word index.

The fields in an index can be older than the message. So PostgreSQL checks the message itself, and
decides.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString, NamedTuple

import psycopg

from mail_assets.errors import name_nearest
from mail_assets.postgres.statements import statement
from mail_assets.search.field_conditions import (
    HIDDEN,
    MAX_WORD_CONSTRAINTS,
    OF_DAYS,
    SHOWN_TEXTS,
    UNFILTERED,
    VECTOR_FIELDS,
    WORD_FIELDS,
    FieldCondition,
    FilePart,
    IndexFilter,
    MixedClause,
    build_index_filter,
    find_outside_addresses,
    is_indexed,
    loosen_clause,
    resolve_clause,
)
from mail_assets.search.language.expression import Clause, Condition, Field, Period, Text
from mail_assets.search.language.request import RequestError, quote
from mail_assets.search.query import LanguageQuery, Query


class Place(NamedTuple):
    """A place in a list by date: after a message; with an empty id, before all of a moment."""

    sent_at: dt.datetime
    message_id: str = ""


class SqlConditions:
    """Conditions of sql/filters.sql on messages m, joined by and; each has its own parameters."""

    def __init__(
        self, conditions: Iterable[LiteralString] = (), parameters: dict[str, Any] | None = None
    ) -> None:
        self.conditions = [*conditions]
        self.parameters = {**(parameters or {})}

    @classmethod
    def of_lists(cls, lists: Sequence[str]) -> "SqlConditions":
        """Start with the condition that a message is in one of these lists."""
        return cls([read_condition("lists")], {"lists": [*lists]})

    def add_any(
        self, clause: Iterable[FieldCondition | Condition], queries: Sequence[LanguageQuery] = ()
    ) -> None:
        """Add the condition that a clause is met; `queries` have its texts in each language."""
        asked = [*clause]
        parts = [
            self._field(one) if isinstance(one, FieldCondition) else self._text(one, queries)
            for one in asked
        ]
        if len(asked) > 1:
            parts = [
                # days have no index without the list
                _join(" and ", [read_condition("lists"), part])
                if isinstance(one, FieldCondition) and one.name in OF_DAYS
                else part
                for one, part in zip(asked, parts, strict=True)
            ]
        self.conditions.append(_join(" or ", parts))

    def require_words(self, queries: Sequence[LanguageQuery]) -> None:
        """Add the tsquery of each language in which the query requires words."""
        if wanted := [(one.lists, one.required) for one in queries if one.required]:
            self.conditions.append(self._words(wanted))

    def start_after(self, place: Place, *, oldest: bool) -> None:
        """Add the condition that a message follows a place in a list by date."""
        name = "past_oldest" if oldest else "past_newest"
        self.conditions.append(
            self._render(name, moment=place.sent_at, message_id=place.message_id)
        )

    def _field(self, condition: FieldCondition) -> LiteralString:
        name, value, negated = condition
        if isinstance(value, Period):
            sides = [("after", value.start), ("before", value.end)]
            found = [self._render(side, **{side: f"{day} UTC"}) for side, day in sides if day]
            text = _join(" and ", found)
        elif isinstance(value, FilePart):
            hidden = HIDDEN if name in SHOWN_TEXTS else {}
            found = [self._render(name, **{name: value.part}, **hidden)]
            if value.changed is None:
                signs = hidden.get("signs")
                found.append(self._render("changed", part=value.part, hidden=signs))
            elif value.changed:
                found.append(self._render("ids", ids=[*value.changed]))
            text = _join(" or ", found)
        else:
            values = {} if value is None else {name: value}
            if name in ("receiver_part", "receiver_name"):
                values["outside"] = find_outside_addresses(str(value))
            text = self._render(name, **values, **(HIDDEN if name in SHOWN_TEXTS else {}))
        return f"not {text}" if negated else text

    def _text(self, condition: Condition, queries: Sequence[LanguageQuery]) -> LiteralString:
        """Return the condition that a message has, or lacks, a text in its list's language.

        A text without a lexeme in a language requires nothing there.
        """
        leaf, wanted = condition.leaf, []
        for one in queries:
            match = one.matches.get(leaf) if isinstance(leaf, Text) else None
            if match and match.tsquery:
                wanted.append((one.lists, match.tsquery))
        return self._words(wanted, negated=condition.negated)

    def _words(
        self, wanted: Iterable[tuple[Sequence[str], str]], *, negated: bool = False
    ) -> LiteralString:
        """Return the condition that a message matches the tsquery of its list, if there is one.

        If every list has a tsquery, PostgreSQL can use its full-text index.
        """
        negation: LiteralString = "not " if negated else ""
        parts, asked = [], set[str]()
        for names, tsquery in wanted:
            words: LiteralString = f"{negation}{self._render('words', words=tsquery)}"
            if {*self.parameters["lists"]} <= {*names}:
                return words
            lists = self._render("lists", lists=[*names])
            parts.append(_join(" and ", [lists, words]))
            asked |= {*names}
        rest = [name for name in self.parameters["lists"] if name not in asked]
        if rest:
            parts.append(self._render("lists", lists=rest))
        return _join(" or ", parts)

    def _render(self, name: str, **values: Any) -> LiteralString:
        """Return a condition in parentheses, with numbered parameters."""
        number = len(self.parameters)
        text = read_condition(name)
        for key, value in values.items():
            text = text.replace(f"%({key})s", f"%({key}_{number})s")
            self.parameters[f"{key}_{number}"] = value
        return f"({text})"


def read_condition(name: str) -> LiteralString:
    """Return a condition of sql/filters.sql without its comment."""
    lines = statement("filters", name).split("\n")
    return "\n".join(line for line in lines if not line.startswith("--"))


def _join(operator: LiteralString, parts: Sequence[LiteralString]) -> LiteralString:
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"


#: Most messages that are walked for conditions that no index covers; they take 60 ms.
MAX_WALKED = 10_000

#: The messages that a statement reads: all, those that an index finds, or the newest (or oldest).
Source = Literal["messages", "indexed", "walked"]


@dataclass(frozen=True)
class MessageFilter:
    """The conditions that every hit meets, in SQL and as filters of the indexes.

    - `conditions`, `parameters`: SQL on messages m; the condition on lists comes first.
    - `word_filter`: the part that the word index checks.
    - `fields`: the conditions on fields. How many the vector index can check depends on its limit.
    - `only_fields`: the request has fields only, no texts.
    - `words_say_all`: the word index checks the whole request, words included.
    - `indexed`: conditions for which PostgreSQL has an index.
    - `walked`: the conditions on lists (first) and on days. PostgreSQL has an index of these by
      date; it would check other conditions on every message.
    - `checked`: slow conditions that nearly all messages found by `indexed` meet. They are checked
      on hits only.
    - `mixed`: alternatives of fields and texts, which `require_words` adds.
    - `oldest`: statements that list or walk by date begin with the oldest messages.
    """

    conditions: tuple[LiteralString, ...]
    parameters: dict[str, Any]
    word_filter: IndexFilter = UNFILTERED
    fields: tuple[tuple[FieldCondition, ...], ...] = ()
    only_fields: bool = True
    words_say_all: bool = True
    indexed: tuple[LiteralString, ...] = ()
    walked: tuple[LiteralString, ...] = ()
    checked: tuple[LiteralString, ...] = ()
    mixed: tuple[MixedClause, ...] = ()
    source: Source = "messages"
    oldest: bool = False

    @property
    def lists(self) -> list[str]:
        """The lists that are searched."""
        return list(self.parameters["lists"])

    @property
    def index_finds_all(self) -> bool:
        """True if no conditions remain besides `indexed`, `walked` and `checked`."""
        return not self.mixed and {*self.indexed, *self.walked, *self.checked} >= {*self.conditions}

    def statement(self, name: str) -> LiteralString:
        """Return a statement of sql/search.sql with the conditions inserted."""
        text = statement("search", name).replace("{source}", self._source())
        text = text.replace("{passes}", _conjunction(self.conditions))
        text = text.replace("{by_date}", "m.sent_at" if self.oldest else "m.sent_at desc")
        text = text.replace("{passes_in_lists}", _conjunction(self.conditions[1:]))
        others = [one for one in self.conditions if one not in (*self.indexed, *self.checked)]
        text = text.replace("{passes_unindexed}", _conjunction(others))
        text = text.replace("{indexed}", _conjunction(self.indexed))
        walked = self.walked
        if walked and len(self.lists) == 1:
            walked = (read_condition("one_list"), *walked[1:])
        return text.replace("{walked}", _conjunction(walked))

    def _source(self) -> LiteralString:
        if self.source == "messages":
            return "messages"
        if self.source == "indexed":
            return f"({statement('search', 'indexed')})"
        return f"({statement('search', 'walked')})"

    def find_by_index(self) -> "MessageFilter":
        """Return the filter for statements that read the messages found by an index."""
        return replace(self, source="indexed")

    def walk(self) -> "MessageFilter":
        """Return the filter for statements that read the MAX_WALKED newest, or oldest, messages."""
        parameters = {**self.parameters, "walked": MAX_WALKED}
        return replace(self, source="walked", parameters=parameters)

    def require_words(self, query: Query, *, by_index: bool = False) -> "MessageFilter":
        """Add the required and excluded words of a query.

        `by_index`: every list requires words, and PostgreSQL's full-text index finds them.
        """
        sql = SqlConditions(self.conditions, self.parameters)
        sql.require_words(query.by_language)
        worded = sql.conditions[len(self.conditions) :]
        for clause in self.mixed:
            sql.add_any(clause, query.by_language)
        if len(sql.conditions) == len(self.conditions):
            return self
        return replace(
            self,
            conditions=tuple(sql.conditions),
            parameters=sql.parameters,
            word_filter=self.word_filter._replace(complete=False),
            only_fields=False,
            words_say_all=self.word_filter.complete
            and all(one.words_say_all for one in query.by_language),
            indexed=(*self.indexed, *worded) if by_index else self.indexed,
            mixed=(),
        )

    def name_lists(self) -> "MessageFilter":
        """Return the filter with its lists in the index filters, even if it searches all lists."""
        named = (FieldCondition("lists", self.lists),)
        if named in self.fields:
            return self
        fields = (named, *self.fields)
        found = build_index_filter(fields, WORD_FIELDS, MAX_WORD_CONSTRAINTS)
        complete = found.complete and self.word_filter.complete
        return replace(self, fields=fields, word_filter=found._replace(complete=complete))

    def start_after(self, place: Place) -> "MessageFilter":
        """Restrict the filter to messages that follow a place in the list by date."""
        sql = SqlConditions(self.conditions, self.parameters)
        sql.start_after(place, oldest=self.oldest)
        side = FieldCondition("from_on" if self.oldest else "up_to", place.sent_at)
        fields = (*self.fields, (side,))
        found = build_index_filter(fields, WORD_FIELDS, MAX_WORD_CONSTRAINTS)
        return replace(
            self,
            conditions=tuple(sql.conditions),
            parameters=sql.parameters,
            fields=fields,
            word_filter=found._replace(complete=False),
            walked=(*self.walked, sql.conditions[-1]),
        )

    def require_threads(
        self, threads: Iterable[str], message_ids: Iterable[str]
    ) -> "MessageFilter":
        """Restrict the filter to the messages of some threads and to some other messages."""
        sql = SqlConditions(self.conditions, self.parameters)
        named = [FieldCondition("threads", [*threads]), FieldCondition("ids", [*message_ids])]
        sql.add_any(named)
        return replace(self, conditions=tuple(sql.conditions), parameters=sql.parameters)

    def require_ids(self, message_ids: Iterable[str]) -> "MessageFilter":
        """Restrict the filter to some messages; only PostgreSQL checks these ids."""
        sql = SqlConditions(self.conditions, self.parameters)
        sql.add_any([FieldCondition("ids", [*message_ids])])
        return replace(self, conditions=tuple(sql.conditions), parameters=sql.parameters)

    def vector_filter(self, max_constraints: int) -> IndexFilter:
        """Return the part that a vector index checks, with at most `max_constraints`."""
        found = build_index_filter(self.fields, VECTOR_FIELDS, max_constraints)
        return found._replace(complete=found.complete and self.only_fields)


def compile_filters(
    connection: psycopg.Connection,
    clauses: Iterable[Clause],
    known_lists: Collection[str],
    *,
    names_only: bool = False,
) -> MessageFilter | None:
    """Compile the fields of a request; None if no message can meet them.

    With `names_only`, people are compared by name.

    Raises:
        RequestError: a list is unknown, a sender matches too many addresses, or is an address with
            `names_only`.
    """
    asked = [clause for clause in clauses if any(isinstance(one.leaf, Field) for one in clause)]
    _check_lists(asked, known_lists)
    lists = [name for name in sorted(known_lists) if all(_admits(one, name) for one in asked)]
    resolved = [
        resolve_clause(connection, clause, names_only=names_only)
        for clause in asked
        if not _is_of_lists(clause)
    ]
    if not lists or not all(one.alternatives for one in resolved if not one.always):
        return None
    pure: list[list[FieldCondition]] = []
    mixed: list[MixedClause] = []
    for one in resolved:
        fields = [met for met in one.alternatives if isinstance(met, FieldCondition)]
        if len(fields) < len(one.alternatives):
            mixed.append(one.alternatives)
        elif not one.always:
            pure.append(fields)
    pure = _join_excluded_ids(pure)
    sql = SqlConditions.of_lists(lists)
    indexed, checked, walked = [], [], [*sql.conditions]
    for clause in pure:
        if is_indexed(clause):
            found = loosen_clause(clause)
            sql.add_any(found)
            indexed.append(sql.conditions[-1])
            if found != clause:
                sql.add_any(clause)
                checked.append(sql.conditions[-1])
                del sql.conditions[-2]  # `checked` implies it
            continue
        sql.add_any(clause)
        if all(one.name in OF_DAYS for one in clause):
            walked.append(sql.conditions[-1])
    if len(lists) < len(known_lists):
        pure.insert(0, [FieldCondition("lists", lists)])
    word_filter = build_index_filter(pure, WORD_FIELDS, MAX_WORD_CONSTRAINTS)
    word_filter = word_filter._replace(complete=word_filter.complete and not mixed)
    return MessageFilter(
        conditions=tuple(sql.conditions),
        parameters=sql.parameters,
        word_filter=word_filter,
        fields=tuple(map(tuple, pure)),
        only_fields=not mixed,
        words_say_all=word_filter.complete,
        indexed=tuple(indexed),
        walked=tuple(walked),
        checked=tuple(checked),
        mixed=tuple(mixed),
    )


def _join_excluded_ids(clauses: Iterable[list[FieldCondition]]) -> list[list[FieldCondition]]:
    """Merge all clauses that exclude a message into one: a thread has hundreds."""
    others, excluded = [], set[str]()
    for clause in clauses:
        if len(clause) == 1 and clause[0].name == "ids" and clause[0].negated:
            excluded.update(clause[0].value)
        else:
            others.append(clause)
    if excluded:
        others.append([FieldCondition("ids", sorted(excluded), negated=True)])
    return others


def _check_lists(clauses: Iterable[Clause], known_lists: Collection[str]) -> None:
    for name in (
        one.leaf.value
        for clause in clauses
        for one in clause
        if isinstance(one.leaf, Field) and one.leaf.name == "list"
    ):
        if name not in known_lists:
            hint = name_nearest(str(name), known_lists)
            known = ", ".join(sorted(known_lists))
            said = f"list {quote(str(name))} is unknown; there are: {known}; {hint}"
            raise RequestError(said.rstrip("; "))


def _is_of_lists(clause: Clause) -> bool:
    return all(isinstance(one.leaf, Field) and one.leaf.name == "list" for one in clause)


def _admits(clause: Clause, name: str) -> bool:
    """Return whether messages of a list can meet a clause; True for clauses not about lists."""
    return not _is_of_lists(clause) or any(
        (one.leaf == Field("list", name)) != one.negated for one in clause
    )


def _conjunction(conditions: Iterable[LiteralString]) -> LiteralString:
    return "\n   and ".join(conditions) or "true"
