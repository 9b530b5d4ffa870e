"""Hand-written threads for the tests of summaries."""

import datetime as dt

from mail_assets.mail.body.segments import segment_body
from mail_assets.summaries.summary import MessageText

START = dt.datetime(2024, 3, 1, 9, tzinfo=dt.UTC)


def write_message(
    number: int, body: str, author: str = "Jo Roe", parent: int | None = None
) -> MessageText:
    """Return the message of a thread that was sent `number` hours after the first."""
    return MessageText(
        f"m{number}@example.org",
        author,
        START + dt.timedelta(hours=number),
        None if parent is None else f"m{parent}@example.org",
        "A pump for the harbor",
        body,
        tuple(segment_body(body, author)),
    )
