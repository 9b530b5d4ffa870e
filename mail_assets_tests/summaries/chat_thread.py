"""A hand-written thread for summaries by a chat model."""

import datetime as dt

from mail_assets.mail.body.lines import Segment
from mail_assets.summaries.summary import MessageText

NOON = dt.datetime(2024, 3, 4, 12, tzinfo=dt.UTC)


def post(number: int, author: str, body: str) -> MessageText:
    """Return a message that answers the one before it."""
    parent = f"{'abc'[number - 1]}@example.org" if number else None
    return MessageText(
        message_id=f"{'abc'[number]}@example.org",
        author=author,
        sent_at=NOON + number * dt.timedelta(hours=1),
        parent_id=parent,
        subject="Pump stops",
        body=body,
        segments=(Segment(0, len(body), "text"),),
    )


THREAD = (
    post(0, "Ann Poe", "Since release 4.2 the pump stops at high tide. What can I do?"),
    post(1, "Bo Roe", "I think that the float valve sticks when salt dries on it."),
    post(2, "Ann Poe", "Thanks, I committed the fix of set_valve() to the main branch."),
)
