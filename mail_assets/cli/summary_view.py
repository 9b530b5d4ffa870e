"""What `mail-assets thread --summary` prints for people."""

from collections.abc import Iterator
from textwrap import fill

import click

from mail_assets.cli.output import plural, printable_line
from mail_assets.tables.conversations import Conversation
from mail_assets.tables.thread_summaries import ThreadSummary

#: Columns of a sentence's lines.
WIDTH = 88


def format_summary(conversation: Conversation, summary: ThreadSummary) -> str:
    """Return the summary of a thread: each sentence, who wrote it, and in which message."""
    return "\n".join(_lines(conversation, summary))


def _lines(conversation: Conversation, summary: ThreadSummary) -> Iterator[str]:
    posts = {post.message_id: post for post in conversation.messages}
    subject = next(iter(posts.values())).subject_base if posts else ""
    yield click.style(printable_line(subject) or "(no subject)", bold=True)
    days = dict.fromkeys(f"{x:%Y-%m-%d}" for x in (summary.first_sent_at, summary.last_sent_at))
    people = ", ".join(map(printable_line, summary.participants))
    yield f"{plural(summary.messages, 'message')}, {' to '.join(days)}, by {people}"
    for one in summary.sentences:
        text = f"{one['part'].capitalize()}: {printable_line(one['text'])}"
        yield ""
        yield fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
        post = posts.get(one["message_id"])
        who = f"{printable_line(post.from_name or post.from_email)}, " if post else ""
        yield click.style(f"    {who}<{printable_line(one['message_id'])}>", dim=True)
    if summary.patches:
        yield ""
        yield f"Patches: {', '.join(f'<{printable_line(x)}>' for x in summary.patches)}"
    if not summary.verbatim:
        yield ""
        yield f"Written by a model ({printable_line(summary.maker)}); its citations were checked."
