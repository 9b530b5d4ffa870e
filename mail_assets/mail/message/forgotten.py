"""Which messages and people are forgotten: removed on request, and kept out for good.

The list holds keyed digests only, so that it does not say what was forgotten: who has the key and
knows an id or an address can ask whether it is in the list. Without the key nobody can, not even
by trying every address. Where other mail names a forgotten message it gets a stand-in id, one for
each, so that answers to it stay together in their thread; a forgotten person's address gives way
to one that is the same for all.
"""

import hmac
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.message import Message

_STAND_IN = "@forgotten.invalid"

#: What stands for every forgotten person where other mail names them (RFC 2606: .invalid).
NOBODY = Address("", f"forgotten{_STAND_IN}")

#: What stands around an address in the text of a name.
_AROUND = re.compile(r"[\s<>()\[\]\"',;:]+")


@dataclass(frozen=True)
class Digests:
    """Makes the digests of one installation: HMAC-SHA-256 with its key."""

    key: bytes = field(repr=False)

    def of_message(self, message_id: str) -> bytes:
        """Return the digest of a Message-ID."""
        return _digest(self.key, f"message {message_id}")

    def of_sender(self, address: str) -> bytes:
        """Return the digest of an address; case does not count."""
        return _digest(self.key, f"sender {address.strip().lower()}")

    @property
    def check_value(self) -> bytes:
        """What tells whether two machines have the same key; the key cannot be found from it."""
        return hmac.digest(self.key, b"check value", "sha256")


@lru_cache(1 << 16)  # a month names the same ids and people again and again
def _digest(key: bytes, value: str) -> bytes:
    return hmac.digest(key, value.encode(), "sha256")


def stand_in(digest: bytes) -> str:
    """Return the id that other mail gets in place of a forgotten one, by its digest."""
    return f"{digest.hex()[:32]}{_STAND_IN}"


def is_stand_in(message_id: str) -> bool:
    """Tell whether an id is a stand-in for a forgotten one."""
    return message_id.endswith(_STAND_IN)


def find_addresses(text: str) -> set[str]:
    """Return what may be an address in "Name <address>" or in a name, in lower case."""
    return {word for word in _AROUND.split(text.lower()) if "@" in word}


class Forgotten(NamedTuple):
    """The forgotten messages and senders, and the ids that get a stand-in, as digests.

    `ids` are those of `messages`, and of the mail of `senders` so far as it was seen. The default
    is that nothing is forgotten: then no digest is made, and no key needed.
    """

    messages: Set[bytes] = frozenset()
    senders: Set[bytes] = frozenset()
    ids: Set[bytes] = frozenset()
    digests: Digests = Digests(b"")

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is forgotten."""
        return not (self.messages or self.senders or self.ids)

    def removal_of(self, message_id: str, name: str, email: str) -> bytes | None:
        """Return the digest by which a message is forgotten, None where it is not.

        `name` and `email` are the author's.
        """
        return self.removal_of_id(message_id) or self.removal_of_author(name, email)

    def removal_of_id(self, message_id: str) -> bytes | None:
        """Return the digest by which a message is forgotten for its id, None where it is not."""
        if not self.messages:
            return None
        digest = self.digests.of_message(message_id)
        return digest if digest in self.messages else None

    def removal_of_author(self, name: str, email: str) -> bytes | None:
        """Return the digest by which all mail of an author is forgotten, None where it is not."""
        if not self.senders:
            return None
        return next((digest for _, digest in self.find_senders(name, email)), None)

    def find_senders(self, name: str, email: str) -> Iterator[tuple[str, bytes]]:
        """Yield those of an author's addresses that are forgotten, with their digests.

        A list server that puts its own address into From often leaves the author's in the name.
        """
        for address in (email, *(find_addresses(name) if "@" in name else ())):
            digest = self.digests.of_sender(address)
            if digest in self.senders:
                yield address, digest

    def hides_id(self, message_id: str) -> bool:
        """Return whether other mail must not name this id."""
        return bool(self.ids) and self.digests.of_message(message_id) in self.ids

    def hide(self, message: Message) -> Message:
        """Return a message with stand-ins for the ids and people that it must not name."""
        ids = (message.references, message.in_reply_to)
        people = (message.reply_to, message.to, message.cc)
        references, in_reply_to = map(self.hide_ids, ids)
        reply_to, to, cc = map(self._hide_people, people) if self.senders else people
        if (references, in_reply_to) == ids and (reply_to, to, cc) == people:
            return message  # as almost always: the others are not copied
        return message._replace(
            references=references,
            in_reply_to=in_reply_to,
            reply_to=reply_to,
            to=to,
            cc=cc,
        )

    def hide_ids(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return ids with a stand-in for each that is forgotten."""
        if not self.ids:
            return tuple(ids)
        digests = ((x, self.digests.of_message(x)) for x in ids)
        return tuple(stand_in(digest) if digest in self.ids else x for x, digest in digests)

    def _hide_people(self, addresses: tuple[Address, ...]) -> tuple[Address, ...]:
        hidden = (self.removal_of_author(*address) is not None for address in addresses)
        return tuple(
            NOBODY if gone else address for address, gone in zip(addresses, hidden, strict=True)
        )
