"""Keyed digests of forgotten messages and people: removed on request and never stored again.

The list has only keyed digests, so it does not reveal what was forgotten. With the key one can
check whether an id or an address is in the list. Without the key nobody can, not even by trying
every address. Other mail that names a forgotten message gets a placeholder id instead. Each
forgotten id has its own placeholder, so answers stay together in their thread. All forgotten people
share one placeholder address.
"""

import hmac
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.ids import FORGOTTEN_DOMAIN, make_placeholder
from mail_assets.mail.message.message import Message

#: Placeholder for every forgotten person in other mail.
NOBODY = Address("", f"forgotten{FORGOTTEN_DOMAIN}")

# characters around an address in the text of a name
_AROUND = re.compile(r"[\s<>()\[\]\"',;:]+")


@dataclass(frozen=True)
class Digests:
    """Digests of one installation: HMAC-SHA-256 with its key."""

    key: bytes = field(repr=False)

    def of_message(self, message_id: str) -> bytes:
        """Return the digest of a Message-ID."""
        return _digest(self.key, f"message {message_id}")

    def of_sender(self, address: str) -> bytes:
        """Return the digest of an address, ignoring case."""
        return _digest(self.key, f"sender {address.strip().lower()}")

    @property
    def check_value(self) -> bytes:
        """Digest that is equal on two machines with the same key and does not reveal the key."""
        return hmac.digest(self.key, b"check value", "sha256")


@lru_cache(1 << 16)  # the mail of a month repeats ids and people
def _digest(key: bytes, value: str) -> bytes:
    return hmac.digest(key, value.encode(), "sha256")


def find_addresses(text: str) -> set[str]:
    """Return the possible addresses in "Name <address>" or in a name, in lower case."""
    return {word for word in _AROUND.split(text.lower()) if "@" in word}


class Forgotten(NamedTuple):
    """Digests of forgotten messages and senders, and of the ids that get a placeholder.

    By default nothing is forgotten. Then no digest is computed and no key is needed.
    """

    messages: Set[bytes] = frozenset()
    senders: Set[bytes] = frozenset()
    ids: Set[bytes] = frozenset()  # of `messages`, and of the mail of `senders` seen so far
    digests: Digests = Digests(b"")

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is forgotten."""
        return not (self.messages or self.senders or self.ids)

    def removal_of(self, message_id: str, name: str, email: str) -> bytes | None:
        """Return the digest of the forgotten id or author of a message, or None."""
        return self.removal_of_id(message_id) or self.removal_of_author(name, email)

    def removal_of_id(self, message_id: str) -> bytes | None:
        """Return the digest of an id if it is forgotten, else None."""
        if not self.messages:
            return None
        digest = self.digests.of_message(message_id)
        return digest if digest in self.messages else None

    def removal_of_author(self, name: str, email: str) -> bytes | None:
        """Return the digest of an author's forgotten address, or None."""
        if not self.senders:
            return None
        return next((digest for _, digest in self.find_senders(name, email)), None)

    def find_senders(self, name: str, email: str) -> Iterator[tuple[str, bytes]]:
        """Yield the forgotten addresses of an author with their digests.

        A list server that puts its own address into From often leaves the author's address in the
        name.
        """
        for address in (email, *(find_addresses(name) if "@" in name else ())):
            digest = self.digests.of_sender(address)
            if digest in self.senders:
                yield address, digest

    def hides_id(self, message_id: str) -> bool:
        """Return whether other mail must not name this id."""
        return bool(self.ids) and self.digests.of_message(message_id) in self.ids

    def hide(self, message: Message) -> Message:
        """Return a message with placeholders for forgotten ids and people."""
        ids = (message.references, message.in_reply_to)
        people = (message.reply_to, message.to, message.cc)
        references, in_reply_to = map(self.hide_ids, ids)
        reply_to, to, cc = map(self._hide_people, people) if self.senders else people
        if (references, in_reply_to) == ids and (reply_to, to, cc) == people:
            return message  # the usual case is not copied
        return message._replace(
            references=references, in_reply_to=in_reply_to, reply_to=reply_to, to=to, cc=cc
        )

    def hide_ids(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return ids with forgotten ones replaced by placeholders."""
        if not self.ids:
            return tuple(ids)
        digests = ((x, self.digests.of_message(x)) for x in ids)
        return tuple(make_placeholder(digest) if digest in self.ids else x for x, digest in digests)

    def _hide_people(self, addresses: tuple[Address, ...]) -> tuple[Address, ...]:
        hidden = (self.removal_of_author(*address) is not None for address in addresses)
        return tuple(
            NOBODY if gone else address for address, gone in zip(addresses, hidden, strict=True)
        )
