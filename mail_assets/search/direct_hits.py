"""Direct hits: messages that PostgreSQL finds by whole subject, or by files that commits change.

Whole subjects: fusion.py puts messages whose whole subject is the query first, because a person who
pastes a subject wants that message. Subjects are compared by topic (mail/message/subjects.py):
case, `Re:` and brackets make no difference; versions must be equal if both have one. The applied
version of a patch comes first, then newer and older versions, then covers, then answers. The patch
that became the commit with this subject comes before all, under any subject. Texts under a
contested id never count, because anybody can send one.

Changed files: a query may name files and functions. The links of commits lead to mail about them
that does not name them: a patch may be reworked when it is applied, and some mail only discusses
it. `file:` takes a part of a path. A query of names only finds files by the end of their paths, and
functions by their names in git's hunk headers.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.mail.message.subjects import (
    find_topic,
    find_topic_and_version,
    has_prefix,
    read_patch_label,
)
from mail_assets.mail.message.text_addresses import SIGNS
from mail_assets.mail.patches.subjects import read_subject
from mail_assets.month import known_month
from mail_assets.postgres.statements import Pending, statement
from mail_assets.reading.patch_states import SHORT
from mail_assets.search.filters import MessageFilter
from mail_assets.search.language.expression import Field, leaves
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.matches import MessageCopy, SubjectHit

#: Most messages that come first for their subject; the newest of a subject that hundreds share.
MAX_HITS = 10
#: Every version tag of a topic is between these two.
_FIRST_VERSION, _LAST_VERSION = "v0", "v999"

_Row = tuple[str, str, str, int, str, dt.datetime, bool, bool, bool]


class _Subject(NamedTuple):
    """A subject to be compared: its topic, and the version of its patch, "" for none."""

    topic: str
    version: str


def ask_whole_subjects(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter
) -> Pending[tuple[SubjectHit, ...]]:
    """Ask for the messages whose whole subject is the query; best first."""
    asked = _read_subjects(parsed)
    if not asked:
        return Pending.known(())
    commits = _ask_commit_subjects(connection, parsed, filters)
    rows = _ask_rows(connection, asked, filters)
    return rows.then(lambda found: _rank(parsed, asked, found, commits.read()))


def is_whole_subject(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter
) -> bool:
    """Return whether a query, with all its signs, is the whole subject of a message."""
    asked = _read_subjects(parsed)
    rows = _ask_rows(connection, asked, filters).read() if asked else []
    return any(_is_equal(one, subject) for _, _, _, _, subject, *_ in rows for one in asked)


def _read_subjects(parsed: ParsedRequest) -> list[_Subject]:
    texts = (parsed.text, parsed.request.query) if parsed.ranks else ()
    return [one for one in dict.fromkeys(map(_read, texts)) if one.topic]


def _ask_rows(
    connection: psycopg.Connection, asked: Sequence[_Subject], filters: MessageFilter
) -> Pending[list[_Row]]:
    parameters = {
        **filters.parameters,
        "subject_lists": filters.lists,
        "topics": [*dict.fromkeys(topic for one in asked for topic in _exact_topics(one))],
        "versioned": [one.topic for one in asked if not one.version],
        "first_version": f" {_FIRST_VERSION}",
        "last_version": f" {_LAST_VERSION}",
        "most": MAX_HITS,
    }
    return Pending(connection.execute(filters.statement("whole_subjects"), parameters).fetchall)


def _ask_commit_subjects(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter
) -> Pending[list[SubjectHit]]:
    """Ask for the patches whose commits have the subject; none if the query names a version."""
    label = read_patch_label(parsed.request.query)
    titles = {read_subject(one).title_key for one in (parsed.text, parsed.request.query)} - {""}
    if not titles or (label and (label.version or label.number == 0)):
        return Pending.known([])
    parameters = {**filters.parameters, "title_keys": sorted(titles), "most": MAX_HITS}
    query = filters.statement("commit_subjects")
    asked = connection.execute(query, parameters)
    return Pending(asked.fetchall).then(
        lambda rows: [
            SubjectHit(message_id, MessageCopy(known_month(name, month), variant), is_answer=False)
            for message_id, name, month, variant in rows
        ]
    )


def _exact_topics(asked: _Subject) -> Iterator[str]:
    """Yield the topics that match exactly: with the version if there is one, and without."""
    if asked.version:
        yield f"{asked.topic} {asked.version}"
    yield asked.topic


def _rank(
    parsed: ParsedRequest,
    asked: Sequence[_Subject],
    rows: Iterable[_Row],
    commits: Sequence[SubjectHit],
) -> tuple[SubjectHit, ...]:
    wanted = read_patch_label(parsed.request.query)
    hits = []
    for message_id, list_name, month, variant, subject, sent_at, *signs in rows:
        if not any(_is_equal(one, subject) for one in asked):
            continue
        label = read_patch_label(subject)
        answers, is_reply, is_applied = signs
        is_answer = answers or has_prefix(subject) or (is_reply and label is None)
        is_cover = label is not None and label.number == 0
        others = wanted is not None and label != wanted
        seconds = sent_at.timestamp()
        order = (
            *(is_answer, others, is_cover, not is_applied),
            seconds if is_answer else -seconds,
        )
        copy = MessageCopy(known_month(list_name, month), variant)
        hits.append((order, SubjectHit(message_id, copy, is_answer)))
    ranked = [hit for _, hit in sorted(hits, key=lambda one: one[0])]
    first = {one.message_id: one for one in (*commits, *ranked)}
    return tuple(first.values())[:MAX_HITS]


def _is_equal(asked: _Subject, subject: str) -> bool:
    """Return whether a subject is the requested one; versions count if both have one."""
    found = _read(subject)
    if asked.topic == found.topic:
        return not (asked.version and found.version) or asked.version == found.version
    return asked.topic == find_topic(subject)


def _read(subject: str) -> _Subject:
    topic, version = find_topic_and_version(subject)
    label = read_patch_label(subject)
    return _Subject(topic, version or (f"v{label.version}" if label and label.version else ""))


#: Most names of a query of names only.
MAX_NAMES = 3
#: Most commits (the newest) that a query of names leads to, and most messages of them.
MAX_COMMITS, MAX_LINKED = 5, 5
#: Most commits that a hit names as a reason.
MAX_REASONS = 3

#: A name as pasted from a diff, a trace or code; group 1 is the name.
_PASTED = re.compile(r"\A(?:[ab]/|\./)?(.*?)(?:\(\)|:\d+(?::\d+)?:?)?\Z", re.DOTALL)
_QUOTES = "`'\"<>,;()[]{}"
#: A sign of names that words of prose do not have.
_JOINED = re.compile(r"[^\W_][._/:]++[^\W_]|_[^\W_]|\(\)")


class ChangedNames(NamedTuple):
    """The names in a request, in lower case: parts of paths, and names.

    `shows_addresses`: a part may match within a mail address in a path.
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
    """Return the names of a query of names only, otherwise ()."""
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
    """Ask for the mail linked to the newest commits that change all of the names."""
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
        "most": MAX_LINKED,
    }
    asked = connection.execute(filters.statement("changed_names"), parameters)
    return Pending(asked.fetchall).then(
        lambda rows: tuple(
            SubjectHit(message_id, MessageCopy(known_month(name, month), variant))
            for message_id, name, month, variant in rows
        )
    )


def _patterns(name: str) -> list[str]:
    """Return patterns that match a name as a path, the end of a path, or a function."""
    literal = _escape(name)
    return [f"%\n{literal}\n%", f"%/{literal}\n%", f"%\n{literal}()\n%"]


def _escape(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def ask_reasons(
    connection: psycopg.Connection, wanted: ChangedNames, message_ids: Sequence[str]
) -> Pending[Mapping[str, Sequence[str]]]:
    """Ask for the commits of messages that change the named files: one line each, by message id."""
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
