"""What was decided in the threads of the best hits, as their summaries have it.

A decision often stands in a message that says nothing of the question ("Applied, thanks."), so that
search does not rank it. It is an excerpt like others: cited is the message, not the summary.
"""

from collections.abc import Sequence
from typing import Any

import psycopg

from mail_assets.answers.excerpts import HEADER_TOKENS, Excerpt, Hide, show_all
from mail_assets.postgres.statements import statement
from mail_assets.search.response import Hit, HitExplanation
from mail_assets.tables.messages import utc

#: Threads whose outcomes are read, those of the best hits.
MAX_THREADS = 3
#: The share of the budget that outcomes may take.
BUDGET_SHARE = 1 / 8


def find_outcomes(
    connection: psycopg.Connection, hits: Sequence[Hit], budget: int, hide: Hide = show_all
) -> list[Excerpt]:
    """Return the sentences that state the outcomes of the best threads, excerpts from number 1.

    Only messages that search has found are read: the others need not pass its filters. Those of a
    message that is no hit have the score 0.
    """
    threads = [*dict.fromkeys(hit.thread_id for hit in hits if hit.thread_id)][:MAX_THREADS]
    known = {hit.message_id: hit for hit in hits}
    found = [*known, *(one for hit in hits for one in hit.in_thread)]
    parameters = {"threads": threads, "found": found}
    excerpts: list[Excerpt] = []
    left = budget * BUDGET_SHARE
    for row in connection.execute(statement("answer", "outcomes"), parameters).fetchall():
        start, around, first, text, message_id = row[:5]
        left -= count_tokens(text)
        if left < 0:
            break
        hit = known.get(message_id) or _build_hit(*row[4:])
        text = hide(around, first, first + len(text))
        excerpts.append(Excerpt(len(excerpts) + 1, hit, ((start, start + len(text)),), text))
    return excerpts


def count_tokens(text: str) -> int:
    """Return how many tokens a sentence takes in a prompt, at most: one for each byte."""
    return HEADER_TOKENS + len(text.encode())


def _build_hit(message_id: str, thread_id: str, lists: list[str], *about: Any) -> Hit:
    """Return a message as a hit that says nothing of the question."""
    month, subject, from_name, from_email, sent_at = about
    return Hit(
        message_id=message_id,
        lists=tuple(lists),
        month=month,
        subject=subject,
        from_name=from_name,
        from_email=from_email,
        sent_at=utc(sent_at),
        score=0.0,
        thread_id=thread_id,
        chunks=(),
        why=HitExplanation({}, (), None, 0.0),
        attachments=(),
    )
