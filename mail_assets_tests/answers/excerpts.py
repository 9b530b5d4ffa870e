"""Excerpts of messages that are in no archive."""

from mail_assets.answers.excerpts import Excerpt
from mail_assets.search.response import Hit, HitExplanation


def excerpt(number: int, text: str, score: float = 0.8) -> Excerpt:
    """An excerpt of one span, which begins at character 100 of its message."""
    hit = Hit(
        message_id=f"{number}@example.org", lists=("dev",), month="2024-03", subject="Leases",
        from_name="Ann", from_email="ann@example.org", sent_at="2024-03-04T09:00:00Z", score=score,
        thread_id=None, chunks=(), why=HitExplanation({}, (), None, 0.0), attachments=(),
    )  # fmt: skip
    return Excerpt(number, hit, ((100, 100 + len(text)),), text)
