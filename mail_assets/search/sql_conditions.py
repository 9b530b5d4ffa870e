"""Conditions of sql/filters.sql put together, each with its own parameters."""

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

from mail_assets.postgres.statements import statement
from mail_assets.search.expression import Condition, Period, Text
from mail_assets.search.field_conditions import OF_DAYS, SHOWN_TEXTS, FieldCondition
from mail_assets.search.hidden_text import HIDDEN
from mail_assets.search.lexemes import TextMatch
from mail_assets.search.query import LanguageQuery


class SqlConditions:
    """Conditions on messages m, which all hold, and their parameters."""

    def __init__(
        self, conditions: Iterable[LiteralString] = (), parameters: dict[str, Any] | None = None
    ) -> None:
        self.conditions = [*conditions]
        self.parameters = {**(parameters or {})}

    @classmethod
    def of_lists(cls, lists: Sequence[str]) -> "SqlConditions":
        """Return that a message is in one of these lists; the parameter is `lists`."""
        return cls([read_condition("lists")], {"lists": [*lists]})

    def add_any(
        self,
        clause: Iterable[FieldCondition | Condition],
        queries: Sequence[LanguageQuery] = (),
    ) -> None:
        """Add that one of these is met; `queries` have the texts among them by language."""
        asked = [*clause]
        parts = [
            self._field(one) if isinstance(one, FieldCondition) else self._text(one, queries)
            for one in asked
        ]
        if len(asked) > 1:
            parts = [
                self._in_lists(part) if _is_of_days(one) else part
                for one, part in zip(asked, parts, strict=True)
            ]
        self.conditions.append(_join(" or ", parts))

    def _in_lists(self, part: LiteralString) -> LiteralString:
        """Return that it holds in the lists that are searched: days have no index of their own."""
        return _join(" and ", [read_condition("lists"), part])

    def require_words(self, queries: Sequence[LanguageQuery]) -> None:
        """Add the tsquery of each language that requires any."""
        for one in queries:
            if one.required:
                words = self._render("words", words=one.required)
                if not self._is_searched_by(one):
                    others = self._render("lists", lists=one.lists)
                    words = _join(" or ", [f"not {others}", words])
                self.conditions.append(words)

    def _is_searched_by(self, query: LanguageQuery) -> bool:
        """Say whether all lists that are searched are of the language."""
        return {*self.parameters["lists"]} <= {*query.lists}

    def _field(self, condition: FieldCondition) -> LiteralString:
        name, value, negated = condition
        if isinstance(value, Period):
            sides = [("after", value.start), ("before", value.end)]
            found = [self._render(side, **{side: f"{day} UTC"}) for side, day in sides if day]
            text = _join(" and ", found)
        else:
            values = {} if value is None else {name: value}
            text = self._render(name, **values, **(HIDDEN if name in SHOWN_TEXTS else {}))
        return f"not {text}" if negated else text

    def _text(self, condition: Condition, queries: Sequence[LanguageQuery]) -> LiteralString:
        """Return that a message matches a text in the language of its list, or does not.

        A text without a lexeme in a language requires nothing of its messages.
        """
        parts, asked = [], set[str]()
        for one in queries:
            leaf = condition.leaf
            match = one.matches.get(leaf) if isinstance(leaf, Text) else None
            if match and match.tsquery:
                words = self._match(match, one.language)
                negation: LiteralString = "not " if condition.negated else ""
                lists = self._render("lists", lists=one.lists)
                parts.append(_join(" and ", [lists, f"{negation}{words}"]))
                asked |= {*one.lists}
        rest = [name for name in self.parameters["lists"] if name not in asked]
        if rest:
            parts.append(self._render("lists", lists=rest))
        return _join(" or ", parts)

    def _match(self, match: TextMatch, language: str) -> LiteralString:
        if not match.pattern:
            return self._render("words", words=match.tsquery)
        values = {"words": match.tsquery, "pattern": match.pattern, "language": language}
        return self._render("phrase", **values)

    def _render(self, name: str, **values: Any) -> LiteralString:
        """Return a condition in parentheses, its parameters numbered."""
        number = len(self.parameters)
        text = read_condition(name)
        for key, value in values.items():
            text = text.replace(f"%({key})s", f"%({key}_{number})s")
            self.parameters[f"{key}_{number}"] = value
        return f"({text})"


def _is_of_days(condition: FieldCondition | Condition) -> bool:
    return isinstance(condition, FieldCondition) and condition.name in OF_DAYS


def read_condition(name: str) -> LiteralString:
    """Return a condition of sql/filters.sql without the comment above it."""
    lines = statement("filters", name).split("\n")
    return "\n".join(line for line in lines if not line.startswith("--"))


def _join(operator: LiteralString, parts: Sequence[LiteralString]) -> LiteralString:
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"
