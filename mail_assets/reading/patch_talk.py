"""Reads sentences about one patch, from the mails of all its versions and the replies to them.

The thread of a long series is about many patches. Mail about one patch is its own mails and their
replies, up to the next patch. Messages that joined a thread only by their subject are left out.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.text_addresses import CONTEXT
from mail_assets.month import utc
from mail_assets.postgres.statements import statement
from mail_assets.summaries.extractive import summarize
from mail_assets.summaries.summary import MessageText, Statement

#: Most messages that are read, applied patches first and then the oldest; most characters of each.
MOST_MESSAGES, MOST_CHARACTERS = 100, 100_000


class Spoken(NamedTuple):
    """A sentence of a message, at the characters `start` to `end` of the body.

    `part` is as in a summary; `around` is the text before and after the sentence.
    """

    message_id: str
    from_name: str
    from_email: str
    sent_at: dt.datetime
    start: int
    end: int
    text: str
    part: str
    around: tuple[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return the sentence as plain values; "sent_at" is ISO 8601 in UTC."""
        fields = {name: value for name, value in self._asdict().items() if name != "around"}
        return {**fields, "sent_at": utc(self.sent_at)}


class PatchTalk(NamedTuple):
    """Sentences about a patch, selected by rules, and the numbers of messages and people.

    `elsewhere` are the messages of its threads that are about another patch.
    """

    messages: int
    people: int
    sentences: tuple[Spoken, ...]
    elsewhere: frozenset[str]

    def leave_out(self, statements: Collection[Statement]) -> "PatchTalk":
        """Return the talk without the sentences that are part of statements."""
        places = [(one.message_id, one.start, one.end) for one in statements]
        sentences = tuple(
            one
            for one in self.sentences
            if not any(
                one.message_id == message_id and start <= one.start and one.end <= end
                for message_id, start, end in places
            )
        )
        return self._replace(sentences=sentences)


def read_talk(
    connection: psycopg.Connection, applied: Collection[str], versions: Iterable[str]
) -> PatchTalk | None:
    """Return sentences about an applied patch and its other versions, None without messages."""
    patches = dict.fromkeys([*applied, *versions])
    if not patches:
        return None
    rows = connection.execute(
        statement("patch_talk", "outline"), {"patches": [*patches]}
    ).fetchall()
    about = [*_find_about(rows, patches)]
    values = {
        "ids": about,
        "applied": [*applied],
        "most": MOST_MESSAGES,
        "characters": MOST_CHARACTERS,
    }
    found = connection.execute(statement("patch_talk", "texts"), values).fetchall()
    messages = [_read_text(row) for row in found]
    if not messages:
        return None
    others = [row[0] for row in rows if row[3] and row[0] not in patches]
    elsewhere = frozenset(_find_about(rows, others))
    return _choose(messages, {row[0]: row for row in found}, elsewhere)


def _find_about(
    outline: Iterable[tuple[str, str | None, bool, bool]], patches: Collection[str]
) -> Iterable[str]:
    """Yield the patches, and replies to them that are not below another patch."""
    about: set[str] = set()
    for message_id, parent_id, is_patch, _ in outline:
        if message_id in patches or (parent_id in about and not is_patch):
            about.add(message_id)
            yield message_id


def _read_text(row: Sequence[Any]) -> MessageText:
    message_id, name, email, sent_at, subject, body, segments = row
    size = len(body)
    parts = tuple(
        Segment(start, min(end, size), kind) for start, end, kind in segments if start < size
    )
    return MessageText(message_id, email or name, sent_at, None, subject, body, parts, sender=email)


def _choose(
    messages: Sequence[MessageText], rows: dict[str, Sequence[Any]], elsewhere: frozenset[str]
) -> PatchTalk:
    sentences = []
    for one in summarize(messages).sentences:
        _, name, email, sent_at, *_, body, _ = rows[one.message_id]
        around = body[max(0, one.start - CONTEXT) : one.start], body[one.end : one.end + CONTEXT]
        place = (one.start, one.end, one.text, one.part)
        sentences.append(Spoken(one.message_id, name, email, sent_at, *place, around))
    people = len({one.author for one in messages})
    return PatchTalk(len(messages), people, tuple(sentences), elsewhere)
