"""Ids that stand for forgotten messages in other mail.

Pages say that such a message was forgotten. An id of this form in mail is ignored, because
otherwise a stranger could make a page say so.
"""

#: End of every such id (RFC 2606: .invalid).
DOMAIN = "@forgotten.invalid"


def make_placeholder(digest: bytes) -> str:
    """Return the placeholder for a forgotten id, made from its digest."""
    return f"{digest.hex()[:32]}{DOMAIN}"


def is_placeholder(message_id: str) -> bool:
    """Return whether an id is a placeholder for a forgotten one."""
    return message_id.endswith(DOMAIN)
