"""Read a whole thread as a conversation: every message of it once, across lists and months.

What does not live here: writing the rows of threads (threads.py), and printing a conversation
(cli/thread_view.py).
"""

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mail_assets.mail.body.segments import Segment
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.messages import utc


@dataclass(frozen=True)
class Post:
    """A message of a conversation, or a ghost: one that others refer to and no archive has.

    Of a ghost only the place in the thread is known. depth counts archived ancestors, position
    numbers the thread from 0. `places` are the months that hold a copy, in order. The text is that
    of the earliest copy; segments are spans in characters of body_text.
    """

    position: int
    depth: int
    message_id: str
    is_ghost: bool
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    places: tuple[ListMonth, ...]
    from_name: str
    from_email: str
    sent_at: dt.datetime | None
    subject: str
    subject_base: str
    body_text: str
    segments: tuple[Segment, ...]


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
        """The names of all lists that have a part of it, sorted."""
        return sorted({place.list_name for post in self.posts for place in post.places})

    def as_json(self) -> dict[str, Any]:
        """Return what `mail-assets thread --json` prints.

        {"thread_id", "lists": [name, ...], "messages": how many are archived, "posts": [...]},
        each post with the fields of `Post` under their names, in pre-order. "sent_at" is ISO 8601
        in UTC, null for a ghost; "places" are {"list", "month"}, "segments" [start, end, kind].
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


def find_thread(connection: psycopg.Connection, id: str) -> str | None:
    """Return the thread that an id leads to: a message's, a ghost's, one that has vanished."""
    row = connection.execute(statement("threads", "resolve"), {"id": id}).fetchone()
    return str(row[0]) if row else None


def read_thread(connection: psycopg.Connection, id: str) -> Conversation | None:
    """Return the whole conversation that an id leads to, None where it leads nowhere.

    `id`, without angle brackets, may be that of any message in it, of a ghost, of the thread, or
    any that led to it before; see mail/threads/aliases.py for what is guaranteed. The id of a
    forgotten message leads nowhere: ask for its stand-in.
    """
    thread_id = find_thread(connection, id)
    if thread_id is None:
        return None
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            statement("threads", "conversation"), {"thread_id": thread_id}
        ).fetchall()
    return Conversation(thread_id, tuple(map(_post, rows)))


def count_threads(connection: psycopg.Connection) -> int:
    """Return the number of threads, as they were last built."""
    row = connection.execute(statement("threads", "count")).fetchone()
    return int(row[0]) if row else 0


def _post(row: dict[str, Any]) -> Post:
    places = map(ListMonth.parse, row.pop("archives"))
    segments = (Segment(*part) for part in row.pop("segments") or ())
    texts = ("from_name", "from_email", "subject", "subject_base", "body_text")
    known = {**row, **{name: row[name] or "" for name in texts}}
    return Post(**known, places=tuple(places), segments=tuple(segments))
