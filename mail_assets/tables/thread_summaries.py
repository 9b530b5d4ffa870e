"""The rows of thread_summaries and summary_changes: changed threads, their mail, and summaries.

Triggers note the threads that have changed. summaries/ makes the content of a summary.
"""

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from mail_assets.mail.body.lines import Segment
from mail_assets.month import utc
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.summaries.decisions import (
    DECIDING,
    DecidedCommit,
    DecisionRecord,
    Said,
    read_record,
)
from mail_assets.summaries.summary import Maker, MessageText, Statement, Summary
from mail_assets.tables.partitions import Partition
from mail_assets.tables.removals import lock_for_load


class ThreadContent(NamedTuple):
    """Size of a thread in archived messages and characters, and a hash of its content."""

    thread_id: str
    messages: int
    characters: int
    content_hash: bytes


def are_summaries_outdated(connection: psycopg.Connection) -> bool:
    """Return whether a thread has changed since summaries were made, or none were made."""
    return bool(read_value(connection, statement("thread_summaries", "are_outdated")))


def change_all_threads(connection: psycopg.Connection) -> None:
    """Note all threads as changed, inside a transaction."""
    connection.execute(statement("thread_summaries", "change_all"))


def read_changes(
    connection: psycopg.Connection, after: str, last: str | None, most: int
) -> list[str]:
    """Return the first `most` changed threads after the id `after`, up to `last` if given."""
    parameters = {"after": after, "until": last, "most": most}
    return read_column(connection, statement("thread_summaries", "next_changes"), parameters)


def count_changes(connection: psycopg.Connection, last: str | None = None) -> int:
    """Return the number of changed threads, up to the id `last` if given."""
    query = statement("thread_summaries", "count_changes")
    return int(read_value(connection, query, {"until": last}) or 0)


def find_nth_change(connection: psycopg.Connection, number: int) -> str:
    """Return the nth changed thread in the order of ids, or the last one; "" if there is none."""
    query = statement("thread_summaries", "find_nth_change")
    return str(read_value(connection, query, {"number": number}) or "")


def take_changes(connection: psycopg.Connection, threads: Collection[str]) -> None:
    """Note some threads as unchanged, inside a transaction; later changes stay noted."""
    parameters = {"threads": [*threads]}
    connection.execute(statement("thread_summaries", "take_changes"), parameters)


def note_changes(connection: psycopg.Connection, threads: Collection[str]) -> None:
    """Note some threads as changed."""
    parameters = {"threads": [*threads]}
    connection.execute(statement("thread_summaries", "note_changes"), parameters)


def read_contents(
    connection: psycopg.Connection, threads: Collection[str]
) -> dict[str, ThreadContent]:
    """Return the sizes and hashes of those threads that have mail; no text is read."""
    parameters = {"threads": [*threads]}
    rows = connection.execute(statement("thread_summaries", "contents"), parameters).fetchall()
    return {row[0]: ThreadContent(*row) for row in rows}


#: Summaries are not partitioned by month, like threads.
CORPUS = Partition("thread_summaries", None)

#: Most characters of a thread that are read; later messages are left out of its summary.
MOST_CHARACTERS = 16_000_000

#: Most commits of a thread that are shown.
MOST_COMMITS = 20

#: Bodies fetched at once, of up to 1 MB each.
_FETCHED = 50


@dataclass(frozen=True)
class ThreadSummary:
    """A stored summary.

    verbatim: True if the sentences are copied from the messages. Otherwise a model wrote them, and
        they were checked against the messages.
    messages: the number of messages that were summarized.
    sentences: {"text", "part", "message_id", "start", "end", "also"} each. A sentence is at the
        characters start to end of the message's body, and also in the messages `also`. If somebody
        with standing has stated an outcome, no sentence of anybody else has the part "outcome".
    around: for each sentence the text before and after it in its message, empty if a model wrote
        it.
    authors: for each sentence the name and address of the author of its message.
    said: the statements that are still in their messages, each with author, time, standing, a
        commit, and the text before and after it.
    linked: the commits that messages of the thread are linked to.
    """

    thread_id: str
    maker: str
    verbatim: bool
    messages: int
    first_sent_at: dt.datetime
    last_sent_at: dt.datetime
    participants: list[str]
    patches: list[str]
    sentences: list[dict[str, Any]]
    around: list[tuple[str, str]]
    authors: list[tuple[str, str]]
    said: list[list[Any]]
    linked: list[list[Any]]

    def read_record(self) -> DecisionRecord:
        """Return the decision of the thread, from its statements and commits."""
        return read_record([_read_said(one) for one in self.said], _read_commits(self.linked))

    def read_context(self, statement: Statement) -> tuple[str, str]:
        """Return the text before and after a statement in its message."""
        found = (
            x
            for x in self.said
            if (x[0]["message_id"], x[0]["start"]) == (statement.message_id, statement.start)
        )
        return next(((x[5], x[6]) for x in found), ("", ""))

    def as_json(self) -> dict[str, Any]:
        """Return the fields and the record of decisions; times are ISO 8601 in UTC."""
        fields = asdict(self)
        for name in ("around", "said", "linked"):
            del fields[name]
        return {
            **fields,
            "decision": describe_record(self.read_record(), lambda one: one.text),
            "first_sent_at": utc(self.first_sent_at),
            "last_sent_at": utc(self.last_sent_at),
        }


def describe_statement(one: Said, text: str) -> dict[str, Any]:
    """Return a statement as plain values, with the text that is shown of it."""
    return {
        "text": text,
        "outcome": one.statement.outcome,
        "who": one.from_name,
        "from_email": one.from_email,
        "said_at": utc(one.said_at),
        "standing": one.standing,
        "sha": one.sha or None,
        "message_id": one.statement.message_id,
        "start": one.statement.start,
        "end": one.statement.end,
    }


def describe_record(
    record: DecisionRecord, show: Callable[[Statement], str]
) -> dict[str, Any] | None:
    """Return a record as plain values, None if it is empty; `show` returns a statement's text."""
    if not record.decided and not record.commits:
        return None

    def describe(one: Said | None) -> dict[str, Any] | None:
        return describe_statement(one, show(one.statement)) if one else None

    return {
        "decided": describe(record.decided),
        "superseded_by": describe(record.superseded_by),
        "earlier": [describe(one) for one in record.earlier],
        "alternatives": [describe(one) for one in record.alternatives],
        "commits": [
            {
                **one._asdict(),
                "committed_at": utc(one.committed_at),
                "reverted_by": one.reverted_by or None,
            }
            for one in record.commits
        ],
    }


def _read_said(row: list[Any]) -> Said:
    fields, author, said_at, standing, sha, _, _, address = row
    about = Statement(**fields)
    if not standing and about.outcome == "withdrawn":
        standing = "author"
    said_at = dt.datetime.fromisoformat(said_at)
    return Said(about, author, address, said_at, standing, sha)


def _read_commits(linked: list[list[Any]]) -> list[DecidedCommit]:
    reverts = [(sha, named) for sha, *_, named in linked]
    return [
        DecidedCommit(
            *(sha, repository, subject, committer, dt.datetime.fromisoformat(committed_at)),
            next((x for x, named in reverts if any(sha.startswith(y) for y in named)), ""),
        )
        for sha, repository, subject, committer, committed_at, is_applied, _ in linked
        if is_applied
    ][:MOST_COMMITS]


class NewSummary(NamedTuple):
    """A summary, and the content that was summarized."""

    content: ThreadContent
    summary: Summary


def read_summary(connection: psycopg.Connection, thread_id: str) -> ThreadSummary | None:
    """Return the summary of a thread, None if there is none."""
    return read_summaries(connection, [thread_id]).get(thread_id)


def read_summaries(
    connection: psycopg.Connection, threads: Collection[str]
) -> dict[str, ThreadSummary]:
    """Return thread -> summary for those threads that have one."""
    with connection.cursor(row_factory=class_row(ThreadSummary)) as cursor:
        cursor.execute(statement("thread_summaries", "read"), {"threads": [*threads]})
        return {row.thread_id: _keep_outcomes(row) for row in cursor}


def _keep_outcomes(summary: ThreadSummary) -> ThreadSummary:
    """Return a summary without outcomes stated by others, if somebody with standing decided."""
    outcomes = [one for one in summary.said if one[0]["part"] == "outcome"]
    summary = replace(summary, said=[one for one in summary.said if one not in outcomes])
    decided = summary.read_record().decided
    if not summary.verbatim or not decided or decided.standing not in DECIDING:
        return summary
    known = {(one[0]["message_id"], one[0]["start"]) for one in outcomes if one[3]}
    sentences = [
        one
        if one["part"] != "outcome" or (one["message_id"], one["start"]) in known
        else {**one, "part": "discussion"}
        for one in summary.sentences
    ]
    return replace(summary, sentences=sentences)


def read_known(
    connection: psycopg.Connection, threads: Collection[str]
) -> dict[str, tuple[str, bytes]]:
    """Return thread -> (maker, content hash) of the summaries of some threads."""
    rows = connection.execute(statement("thread_summaries", "known"), {"threads": [*threads]})
    return {thread_id: (maker, content) for thread_id, maker, content in rows.fetchall()}


def count_summaries(connection: psycopg.Connection) -> int:
    """Return the number of summaries."""
    return int(read_value(connection, statement("thread_summaries", "count")) or 0)


def read_messages(
    connection: psycopg.Connection, threads: Collection[str]
) -> dict[str, list[MessageText]]:
    """Return thread -> its archived messages, in their order.

    If a thread has more than `MOST_CHARACTERS`, only messages that fit are returned, at least one.
    """
    found: dict[str, list[MessageText]] = {}
    with connection.transaction(), connection.cursor("summaries") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(statement("thread_summaries", "messages"), {"threads": [*threads]})
        for thread_id, rows in groupby(cursor, itemgetter(0)):
            messages = found.setdefault(thread_id, [])
            left = MOST_CHARACTERS
            seen: set[str | None] = {None}
            joined: set[str | None] = set()
            for _, *head, body, segments, patch_attached, by_subject, sender in rows:
                message_id, author, sent_at, parent_id, subject = head
                if by_subject or parent_id in joined or parent_id not in seen:
                    joined.add(message_id)
                seen.add(message_id)
                left -= len(body)
                if left < 0 and messages:
                    continue
                parts = tuple(Segment(*part) for part in segments)
                text = (body, parts, patch_attached, message_id in joined, sender)
                messages.append(MessageText(message_id, author, sent_at, parent_id, subject, *text))
    return found


def lock_for_summaries(connection: psycopg.Connection) -> None:
    """Lock threads against changes, and mail against forgetting, until the transaction ends."""
    lock_for_load(connection)
    connection.execute(statement("thread_summaries", "lock_threads"))
    connection.execute(statement("thread_summaries", "give_up_early"))


def delete_summaries(connection: psycopg.Connection, threads: Collection[str]) -> None:
    """Delete the summaries of threads that are too short for one, inside a transaction."""
    connection.execute(statement("thread_summaries", "delete"), {"threads": [*threads]})


def write_summaries(
    connection: psycopg.Connection, maker: Maker, made: Mapping[str, NewSummary]
) -> set[str]:
    """Write the summaries of threads, inside a transaction; return the ids of changed ones.

    The checks of the months of their messages will run again.
    """
    rows = [_row(thread_id, maker, new) for thread_id, new in sorted(made.items())]
    written: set[str] = set()
    with connection.cursor() as cursor:
        cursor.executemany(statement("thread_summaries", "write"), rows, returning=True)
        while True:
            written.update(thread_id for (thread_id,) in cursor)
            if not cursor.nextset():
                break
    connection.execute(statement("thread_summaries", "uncheck"), {"threads": [*written]})
    return written


def drop_orphans(connection: psycopg.Connection) -> None:
    """Delete the summaries of threads that do not exist; normally triggers do so."""
    connection.execute(statement("thread_summaries", "drop_orphans"))


def _row(thread_id: str, maker: Maker, new: NewSummary) -> dict[str, Any]:
    summary = new.summary
    return {
        "thread_id": thread_id,
        "maker": maker.fingerprint,
        "verbatim": maker.verbatim,
        "content_hash": new.content.content_hash,
        "messages": new.content.messages,
        "first_sent_at": summary.first_at,
        "last_sent_at": summary.last_at,
        "participants": [*summary.participants],
        "patches": [*summary.patches],
        "sentences": Jsonb([asdict(sentence) for sentence in summary.sentences]),
        "statements": Jsonb([asdict(one) for one in summary.statements]),
    }
