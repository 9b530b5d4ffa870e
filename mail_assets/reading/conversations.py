"""Reads a whole thread as a conversation: each message once, across lists and months."""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.message import Attachment
from mail_assets.month import ListMonth, utc
from mail_assets.postgres.statements import read_as, read_column, read_value, statement


@dataclass(frozen=True)
class Post:
    """A message of a conversation, or a ghost: a message that others refer to and no archive has.

    A ghost has only its place in the thread.

    position: number in the thread, from 0, in pre-order.
    depth: number of archived ancestors.
    body_text: the text, or its beginning, of the copy that arrived first.
    characters: length of the whole text.
    segments: spans in characters of body_text.
    places: the months that have this text.
    contested: True if other texts claim the id.
    flags: names from mail.message.message.FLAGS.
    """

    position: int
    depth: int
    message_id: str
    is_ghost: bool
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    by_subject: bool  # only its subject joins it to the thread
    places: tuple[ListMonth, ...]
    from_name: str
    from_email: str
    sent_at: dt.datetime | None
    subject: str
    subject_base: str
    body_text: str
    characters: int
    segments: tuple[Segment, ...]
    attachments: tuple[Attachment, ...]
    contested: bool = False
    flags: tuple[str, ...] = ()


class Place(NamedTuple):
    """A thread and a position in it."""

    thread_id: str
    position: int


class Extent(NamedTuple):
    """A part of a thread: posts from position `first`, characters of each; None means no limit."""

    first: int = 0
    posts: int | None = None
    characters: int | None = None


WHOLE = Extent()


class ThreadSize(NamedTuple):
    """The size of a thread; `positions` includes ghosts. The subject is that of the root."""

    positions: int
    messages: int
    people: int
    lists: tuple[str, ...]
    first_sent_at: dt.datetime | None
    last_sent_at: dt.datetime | None
    subject: str


@dataclass(frozen=True)
class Conversation:
    """A thread; its first post is the oldest root, perhaps a ghost."""

    thread_id: str
    posts: tuple[Post, ...]

    @property
    def messages(self) -> list[Post]:
        """The posts that are archived."""
        return [post for post in self.posts if not post.is_ghost]

    @property
    def lists(self) -> list[str]:
        """The names of all lists with a message of it, sorted."""
        return sorted({place.list_name for post in self.posts for place in post.places})

    def as_json(self) -> dict[str, Any]:
        """Return what `mail-assets thread --json` prints.

        {"thread_id", "lists": [name, ...], "messages": number of archived posts, "posts": [...]}.
        Posts are in pre-order and have the fields of `Post`: "sent_at" is ISO 8601 in UTC, null for
        a ghost; "places" are {"list", "month"}, "segments" [start, end, kind].
        """
        posts = [
            {
                **asdict(post),
                "places": [place.columns for place in post.places],
                "sent_at": utc(post.sent_at) if post.sent_at else None,
            }
            for post in self.posts
        ]
        return {
            "thread_id": self.thread_id,
            "lists": self.lists,
            "messages": len(self.messages),
            "posts": posts,
        }


def find_place(connection: psycopg.Connection, id: str) -> Place | None:
    """Return the place that an id, without angle brackets, leads to.

    The id may be the id of a message, of a ghost, of the thread, or a former id; see
    mail/threads.py. For a forgotten message, use its placeholder: its id is not found.
    """
    row = connection.execute(statement("conversations", "resolve"), {"id": id}).fetchone()
    return Place(*row) if row else None


def read_thread(connection: psycopg.Connection, id: str) -> Conversation | None:
    """Return the whole conversation of an id (see find_place), None if it is not found."""
    place = find_place(connection, id)
    return Conversation(place.thread_id, read_posts(connection, place.thread_id)) if place else None


def read_posts(
    connection: psycopg.Connection, thread_id: str, extent: Extent = WHOLE
) -> tuple[Post, ...]:
    """Return the posts of a thread in pre-order, or a part of them."""
    parameters = {
        "thread_id": thread_id,
        "first": extent.first,
        "most": extent.posts,
        "characters": extent.characters,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("conversations", "conversation"), parameters).fetchall()
    return tuple(map(_post, rows))


def measure_thread(connection: psycopg.Connection, thread_id: str) -> ThreadSize:
    """Return the size of a thread without reading its texts."""
    row = connection.execute(
        statement("conversations", "extent"), {"thread_id": thread_id}
    ).fetchone()
    assert row  # an aggregate always returns one row
    positions, messages, people, lists, *rest = row
    return ThreadSize(positions or 0, messages, people, tuple(lists or ()), *rest)


def find_page_starts(connection: psycopg.Connection, thread_id: str, size: int) -> list[str]:
    """Return the id of the first post of each page of a thread; a page has `size` positions."""
    parameters = {"thread_id": thread_id, "size": size}
    return read_column(connection, statement("conversations", "page_starts"), parameters)


def read_state(connection: psycopg.Connection, thread_id: str) -> str:
    """Return a digest that changes whenever the page of a thread would change."""
    query = statement("conversations", "state")
    return str(read_value(connection, query, {"thread_id": thread_id}))


class Node(NamedTuple):
    """A node in the outline of a thread; texts and dates are None for a ghost.

    number: number of archived messages up to this node.
    messages: number of archived messages in the thread.
    answers: True for a direct reply to the requested message. Only such a node has the beginning of
        its text, and the segments of the whole text.
    """

    position: int
    depth: int
    message_id: str
    is_ghost: bool
    answers: bool
    by_subject: bool
    number: int
    messages: int
    from_name: str | None
    from_email: str | None
    sent_at: dt.datetime | None
    subject_base: str | None
    body_text: str | None
    segments: list[tuple[int, int, str]] | None


def read_outline(
    connection: psycopg.Connection, message_id: str, around: tuple[int, int], characters: int
) -> list[Node]:
    """Return the nodes around a message, its answers, and the first message of its thread.

    `around` has the numbers of nodes before and after it. Of each reply, the first `characters`
    characters are read.
    """
    above, below = around
    parameters = {
        "message_id": message_id,
        "above": above,
        "below": below,
        "characters": characters,
    }
    return read_as(connection, Node, statement("conversations", "outline"), parameters)


class Ordinal(NamedTuple):
    """The number of a message in its thread, from 1, and the number of messages there."""

    number: int
    messages: int


def read_ordinals(connection: psycopg.Connection, ids: Collection[str]) -> dict[str, Ordinal]:
    """Return the numbers of messages in their threads; ids that are in no thread are left out."""
    rows = connection.execute(statement("conversations", "places"), {"ids": [*ids]}).fetchall()
    return {id: Ordinal(*numbers) for id, *numbers in rows}


def count_threads(connection: psycopg.Connection) -> int:
    """Return the number of threads, as of the last build."""
    return int(read_value(connection, statement("conversations", "count")) or 0)


def _post(row: dict[str, Any]) -> Post:
    places = map(ListMonth.parse, row.pop("archives"))
    texts = ("from_name", "from_email", "subject", "subject_base")
    text, characters = row.pop("body_text") or "", row.pop("characters") or 0
    segments = (Segment(*part) for part in row.pop("segments") or ())
    attachments = (Attachment(**one) for one in row.pop("attachments") or ())
    flags = row.pop("flags") or ()
    return Post(
        **row | {name: row[name] or "" for name in texts},
        places=tuple(places),
        body_text=text,
        characters=characters,
        segments=tuple(_cut_segments(segments, len(text))),
        attachments=tuple(attachments),
        flags=tuple(flags),
    )


def _cut_segments(segments: Iterable[Segment], end: int) -> Iterator[Segment]:
    return (one._replace(end=min(one.end, end)) for one in segments if one.start < end)
