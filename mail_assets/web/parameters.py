"""Parameters of requests: one table describes them (openapi.py), checks them and refuses others.

A value comes from a path, a query string, a form or a JSON body, always as text. It is checked by
the schema of its parameter before any other code reads it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mail_assets.month import PATTERN as MONTH
from mail_assets.search.language.request import (
    GROUPS,
    MAX_LIMIT,
    MAX_NAME,
    MAX_OFFSET,
    MAX_QUERY,
    MODES,
    NEWEST,
    SORTS,
    check_text,
    one_of,
    quote,
)
from mail_assets.web.responses import ServingError

#: Text without NUL characters, which PostgreSQL does not accept.
_NO_NUL = r"[^\x00]*"
#: Text that is not blank.
_NOT_BLANK = r"[^\x00]*[^\s\x00][^\x00]*"
#: Days: months of 31 and 30 days, February.
_MONTH_AND_DAY = (
    r"(0[13578]|1[02])(-(0[1-9]|[12][0-9]|3[01]))?|(0[469]|11)(-(0[1-9]|[12][0-9]|30))?"
    r"|02(-(0[1-9]|1[0-9]|2[0-8]))?"
)
_LEAP_YEAR = r"(19(0[48]|[2468][048]|[13579][26])|20(0[048]|[2468][048]|[13579][26]))"
_DAY = rf" *([0-9]{{1,3}}[dwmy]|(19|20)[0-9]{{2}}(-({_MONTH_AND_DAY}))?|{_LEAP_YEAR}-02-29)? *"
_DAYS = "YYYY, YYYY-MM, YYYY-MM-DD, or 2y for two years"


class Parameter(NamedTuple):
    """A parameter: a description, and either choices, numeric bounds, or the form of a text.

    A text has `least` to `most` characters; with `least` the parameter is required. `pattern` is a
    regular expression with the same meaning in ECMA 262 and Python; it matches the whole text.
    `form` explains it in words. An empty choice counts as not given, as in an HTML form.
    """

    description: str
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    pattern: str = _NO_NUL
    most: int = MAX_QUERY
    least: int = 0
    form: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        if self.bounds:
            least, most = self.bounds
            return {"type": "integer", "minimum": least, "maximum": most}
        if self.choices:
            return {"type": "string", "enum": ["", *self.choices]}
        least_of = {"minLength": self.least} if self.least else {}
        pattern = f"^{self.pattern}$"
        return {"type": "string", **least_of, "maxLength": self.most, "pattern": pattern}

    def check(self, name: str, value: str) -> None:
        """Check a value by the schema."""
        if self.bounds:
            _check_number(name, value, *self.bounds)
        elif self.choices:
            one_of(name, value, ("", *self.choices))
        else:
            fits = self.least <= len(value) and re.fullmatch(self.pattern, value[: self.most])
            if self.form and not fits:
                raise _refuse(f"{name} {quote(value)}: {self.form}" if value else self.form)
            check_text(name, value, self.most)


def _check_number(name: str, value: str, least: int, most: int) -> None:
    if not (value.isascii() and value.isdigit() and len(value) <= len(str(most))):
        raise _refuse(f"{name} {quote(value)}: must be a number from {least} to {most}")
    if not least <= int(value) <= most:
        raise _refuse(f"{name} {value}: allowed are {least} to {most}")


def _refuse(message: str, allowed: Sequence[str] = ()) -> ServingError:
    return ServingError(400, "bad_request", message, allowed=allowed)


#: Parameters by name.
Table: TypeAlias = dict[str, Parameter]

SEARCH_PARAMETERS: Table = {
    "q": Parameter("the query: words, and fields such as from: or after:"),
    "list": Parameter(
        "only this list", pattern=f"({_NOT_BLANK})?", most=MAX_NAME, form="name a list, or none"
    ),
    "after": Parameter(f"from this day on: {_DAYS}", pattern=_DAY, form=f"write {_DAYS}"),
    "before": Parameter("before this day", pattern=_DAY, form=f"write {_DAYS}"),
    "sender": Parameter("a part of the sender's name"),
    "mode": Parameter("how messages are found", MODES),
    "group": Parameter("rows: conversations with their best messages, or messages", GROUPS),
    "sort": Parameter(
        "the order of the hits: the best first, or by date with every word required",
        (*SORTS, NEWEST),
    ),
    "near": Parameter(
        "the id of the message or thread at hand: adds its subject to the question, leaves it out"
    ),
    "limit": Parameter(f"rows of a page, 1 to {MAX_LIMIT}", bounds=(1, MAX_LIMIT)),
    "offset": Parameter(
        f"rows to skip, 0 to {MAX_OFFSET}; `next` leads further", bounds=(0, MAX_OFFSET)
    ),
    "cursor": Parameter(
        "the place where a page begins, from `next` of the page before; `offset` is then ignored",
        pattern=r"[A-Za-z0-9_-]*",
        most=4 * MAX_QUERY,
        form="take a cursor from `next`",
    ),
}
#: The parameters of the question form; an answer has no pages.
QUESTION_PARAMETERS: Table = {
    name: SEARCH_PARAMETERS[name] for name in ("q", "list", "after", "before", "sender", "mode")
}
#: The parameters of a submitted question.
ASKED_PARAMETERS: Table = {
    **QUESTION_PARAMETERS,
    "q": Parameter("the question", pattern=_NOT_BLANK, least=1, form="ask a question: q is empty"),
}
ID: Table = {
    "id": Parameter(
        "a Message-ID, percent-encoded, with or without angle brackets",
        pattern=r"[^\x00]+",
        least=1,
        form="give the id of a message",
    )
}
TEXT_OF_ID: Table = {
    **ID,
    "list": Parameter(
        "the list whose text is wanted, if several texts claim the id", most=MAX_NAME
    ),
    "text": Parameter(
        "the number of the text that is wanted: 1 arrived first", bounds=(0, 999_999_999)
    ),
}
ATTACHMENT: Table = {
    **TEXT_OF_ID,
    "number": Parameter("the number of the file, from 1", bounds=(1, 999_999_999), least=1),
}
CURSOR: Table = {
    "cursor": SEARCH_PARAMETERS["cursor"]._replace(
        description="the place where a page begins, from `next` of the page before"
    )
}
FIRST: Table = {
    "first": Parameter("the number of the first message, from 0", bounds=(0, 9_999_999))
}
LIST: Table = {"list": Parameter("the name of the list", most=MAX_NAME, least=1)}
MONTH_OF_LIST: Table = {
    **LIST,
    "month": Parameter(
        "the month", pattern=MONTH, least=7, most=7, form="write YYYY-MM, from 1970-01 to 2099-12"
    ),
}
COMMIT: Table = {
    "sha": Parameter(
        "the id of a commit, or its first digits: fewer would name many",
        pattern="[0-9A-Fa-f]{4,64}",
        least=4,
        most=64,
        form="is no id of a commit; write 4 to 64 hexadecimal digits",
    )
}
SERIES: Table = {
    **ID,
    "old": Parameter(
        "the earlier of two postings to compare, from 0; the one before `new` if that is given",
        bounds=(0, 99_999),
    ),
    "new": Parameter(
        "the later of two postings to compare, from 0; the one after `old` if that is given",
        bounds=(0, 99_999),
    ),
}


def require_once(given: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return parameters by name; raise an error if one is given twice."""
    [(name, times), *_] = Counter(name for name, _ in given).most_common(1) or [("", 0)]
    if times > 1:
        raise _refuse(f"parameter {name[:40]!r} is given {times} times")
    return dict(given)


def refuse_unknown(given: Mapping[str, str], known: Table) -> None:
    """Refuse unknown parameters; ignoring one would run another search."""
    if unknown := sorted(given.keys() - known.keys()):
        allowed = [*known]
        message = f"parameter {unknown[0][:40]!r} is unknown; there are: {', '.join(allowed)}"
        raise _refuse(message, allowed)
