"""Files and functions that a query names, and the mail of the commits that change them.

A commit may change a file that its mail does not name: the patch was reworked when it was applied,
or the mail only discusses it. The links of commits lead to such mail. `file:` takes a part of a
path. A question that is nothing but names finds files by the end of their paths, and functions by
their names as git writes them above hunks.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.mail.message.text_addresses import SIGNS
from mail_assets.month import known_month
from mail_assets.postgres.statements import Pending, statement
from mail_assets.reading.patch_states import SHORT
from mail_assets.search.filters import MessageFilter
from mail_assets.search.language.expression import Field, leaves
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.matches import MessageCopy, SubjectHit

#: Names that a question of nothing else may have.
MAX_NAMES = 3
#: Commits that a question of names leads to, the newest, and their messages.
MAX_COMMITS, MAX_HITS = 5, 5
#: Commits that a hit names as its reason.
MAX_REASONS = 3

#: What is around a name where it is pasted from a diff, a trace or code.
_PASTED = re.compile(r"\A(?:[ab]/|\./)?(.*?)(?:\(\)|:\d+(?::\d+)?:?)?\Z", re.DOTALL)
_QUOTES = "`'\"<>,;()[]{}"
#: A sign that words of prose do not have.
_JOINED = re.compile(r"[^\W_][._/:]++[^\W_]|_[^\W_]|\(\)")


class ChangedNames(NamedTuple):
    """The names in a request: parts of paths, and names, each lower case.

    `shows_addresses`: a part may be in an address within a path.
    """

    parts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    shows_addresses: bool = True


def read_changed_names(parsed: ParsedRequest) -> ChangedNames:
    """Return the files and functions that a request names."""
    fields = [one for one in leaves(parsed.node) if isinstance(one, Field) and one.name == "file"]
    parts = tuple(dict.fromkeys(str(one.value).lower() for one in fields))
    return ChangedNames(parts, _read_names(parsed), not parsed.request.names_only)


def _read_names(parsed: ParsedRequest) -> tuple[str, ...]:
    """Return the names of a question that has nothing else, () of another one."""
    words = parsed.text.split() if parsed.ranks else []
    if not 0 < len(words) <= MAX_NAMES:
        return ()
    if len(words) > 1 and not all(map(_JOINED.search, words)):
        return ()
    return tuple(name for word in words if (name := _clean_name(word)))


def _clean_name(word: str) -> str:
    bare = word.rstrip(".:").lower()
    if not bare.endswith("()"):
        bare = bare.strip(_QUOTES)
    found = _PASTED.match(bare.lstrip(_QUOTES))
    return found[1].strip("/") if found else ""


def ask_linked(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter
) -> Pending[tuple[SubjectHit, ...]]:
    """Ask for the messages that the newest commits which change all of the names are linked to."""
    names = _read_names(parsed)
    if not names:
        return Pending.known(())
    first, *others = sorted(map(_patterns, names), key=lambda some: -len(some[0]))
    more = [*others, ["%"], ["%"]]
    parameters = {
        **filters.parameters,
        **dict(zip(("whole", "ending", "function"), first, strict=True)),
        "second": more[0],
        "third": more[1],
        "commits": MAX_COMMITS,
        "most": MAX_HITS,
    }
    asked = connection.execute(filters.statement("changed_names"), parameters)
    return Pending(asked.fetchall).then(
        lambda rows: tuple(
            SubjectHit(message_id, MessageCopy(known_month(name, month), variant))
            for message_id, name, month, variant in rows
        )
    )


def _patterns(name: str) -> list[str]:
    """Return the patterns of texts that have a name as a path, its end, or a function."""
    literal = _escape(name)
    return [f"%\n{literal}\n%", f"%/{literal}\n%", f"%\n{literal}()\n%"]


def _escape(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def ask_reasons(
    connection: psycopg.Connection, wanted: ChangedNames, message_ids: Sequence[str]
) -> Pending[Mapping[str, Sequence[str]]]:
    """Ask which commits of some messages change what is named: a line for each, by message."""
    if not message_ids or not (wanted.parts or wanted.names):
        return Pending.known({})
    parameters = {
        "message_ids": [*message_ids],
        "parts": [*wanted.parts],
        "hidden": None if wanted.shows_addresses else SIGNS,
        "names": [one for name in wanted.names for one in _patterns(name)],
    }
    asked = connection.execute(statement("search_patches", "reasons"), parameters)

    def describe(rows: Sequence[tuple[str, str, str]]) -> Mapping[str, Sequence[str]]:
        reasons: dict[str, list[str]] = defaultdict(list)
        for message_id, sha, name in rows:
            if len(reasons[message_id]) < MAX_REASONS:
                reasons[message_id].append(f"commit {sha[:SHORT]} changes {name}")
        return reasons

    return Pending(asked.fetchall).then(describe)
