"""Which messages are forgotten: removed on request by id or sender, and kept out for good.

The list holds digests only, so that it does not say what was forgotten: who knows an id or an
address can ask whether it is in the list, and nobody can read it from there. Where other mail
names a forgotten message it gets a stand-in id, one for each, so that answers to it stay
together in their thread.
"""

import hashlib
from collections.abc import Iterable, Set
from typing import NamedTuple

from mail_assets.mail.message.message import Message

_STAND_IN = "@forgotten.invalid"


def message_digest(message_id: str) -> bytes:
    """Return the digest of a Message-ID."""
    return hashlib.sha256(f"message {message_id}".encode()).digest()


def sender_digest(address: str) -> bytes:
    """Return the digest of an address; case does not count."""
    return hashlib.sha256(f"sender {address.strip().lower()}".encode()).digest()


def stand_in(digest: bytes) -> str:
    """Return the id that other mail gets in place of a forgotten one, by its digest."""
    return f"{digest.hex()[:32]}{_STAND_IN}"


def is_stand_in(message_id: str) -> bool:
    """Tell whether an id is a stand-in for a forgotten one."""
    return message_id.endswith(_STAND_IN)


class Forgotten(NamedTuple):
    """The forgotten messages and senders, and the ids that get a stand-in, as digests.

    `ids` are those of `messages`, and of the mail of `senders` so far as it was seen.
    """

    messages: Set[bytes] = frozenset()
    senders: Set[bytes] = frozenset()
    ids: Set[bytes] = frozenset()

    def removal_of(self, message: Message) -> bytes | None:
        """Return the digest by which a message is forgotten, None where it is not."""
        if self.messages and (digest := message_digest(message.message_id)) in self.messages:
            return digest
        if self.senders and (digest := sender_digest(message.from_email)) in self.senders:
            return digest
        return None

    def hide(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return ids with a stand-in for each that is forgotten."""
        if not self.ids:
            return tuple(ids)
        digests = ((x, message_digest(x)) for x in ids)
        return tuple(stand_in(digest) if digest in self.ids else x for x, digest in digests)
