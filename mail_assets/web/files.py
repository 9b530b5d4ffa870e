"""Downloads: mailboxes of lists, months, searches, threads and messages, and attachments.

If addresses are hidden, only plain text is served, with addresses masked. In other files, such as
pictures and compressed archives, addresses cannot be found; raw messages contain all addresses.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mail_assets.mail.message.text_addresses import MASK
from mail_assets.month import ListMonth
from mail_assets.reading.attachments import AttachmentContent, read_attachment, read_parsed_bytes
from mail_assets.reading.exports import TextOf
from mail_assets.web.documents import FIRST, Documents
from mail_assets.web.exports import (
    Exports,
    drop_ids,
    mark_contested,
    name_file,
    quote_raw,
)
from mail_assets.web.privacy import MAX_MASKED, REFUSED, find_hidden, is_encoded, say_hidden
from mail_assets.web.requests import Wanted
from mail_assets.web.responses import ServingError

#: Control characters that never occur in text.
_NO_TEXT = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")
#: Line ends that may divide words: those of quoted-printable in any text, and those before a blank
#: in calendars (RFC 5545, 3.1), cards (RFC 6350, 3.2) and directories (RFC 2849).
_SOFT_END = re.compile(r"=\r?\n")
_FOLD = re.compile(r"=?\r?\n[ \t]|=\r?\n")
_IS_FOLDED = re.compile(r"^(?:BEGIN:V(?:CALENDAR|CARD)|dn::?)", re.MULTILINE | re.IGNORECASE)


class Download(NamedTuple):
    """A file to download."""

    name: str
    media_type: str
    data: bytes
    hidden: int = 0  # addresses


@dataclass(frozen=True)
class Downloads:
    """Makes files of messages and attachments for publication."""

    documents: Documents
    exports: Exports

    def message(self, id: str, wanted: Wanted = FIRST) -> Download:
        """Return a message as a mailbox: original bytes, or stored rows if addresses are hidden.

        It has all texts that claim the id, the wanted one first, each marked as contested.

        Raises:
            StoreError: its archive is missing.
        """
        copies = self.documents.read_copies(id, wanted)
        message_id = copies[0]["message_id"]
        texts = [*{row["text"]: row for row in reversed(copies)}.values()][::-1]
        if self.documents.publication.hides:
            asked = [TextOf(message_id, row["text"] or 1) for row in texts]
            data = b"".join(map(self.exports.write, self.exports.read(asked)))
        else:
            data = b"".join(map(self._read_original, texts))
        return Download(name_file("message", message_id, ".mbox"), "application/mbox", data)

    def _read_original(self, row: Mapping[str, Any]) -> bytes:
        month = ListMonth(row["list"], row["month"])
        place = (month, row["archive_offset"], row["archive_length"])
        parsed = self.documents.service.read(
            read_parsed_bytes, self.documents.service.store, *place
        )
        parsed = drop_ids(parsed, row["closed_ids"])
        return quote_raw(parsed, row["sent_at"], mark_contested(row["text"], [row["list"]]))

    def attachment(self, id: str, number: int, wanted: Wanted = FIRST) -> Download:
        """Return an attachment of a message by its number, from 1.

        Raises:
            AttachmentError, StoreError: its archive is missing, or has changed.
        """
        every = self.documents.read_copies(id, wanted)
        copies = [copy for copy in every if copy["text"] == every[0]["text"]]
        has = max(len(copy["attachments"]) for copy in copies)
        if not 1 <= number <= has:
            raise ServingError(404, "not_found", f"no attachment {number}: the message has {has}")
        found = self.documents.service.read(
            read_attachment, self.documents.service.store, copies, number
        )
        about = self.documents.publication.publish(found.name)
        name = name_file(f"attachment-{number}", about, "")
        if self.documents.publication.hides:
            return Download(name, "text/plain; charset=utf-8", *self._mask(found))
        return Download(name, "application/octet-stream", found.data)

    def _mask(self, found: AttachmentContent) -> tuple[bytes, int]:
        """Return the masked content and the number of hidden addresses; patches get a notice."""
        text = _read_text(found)
        if text is None:
            message = (
                "addresses are hidden here, so attachments are served only if they are plain text "
                f"of at most {MAX_MASKED >> 10} KB, without keys or encoded data"
            )
            raise ServingError(403, "not_published", message)
        published: str = self.documents.publication.publish(text)
        ends = _FOLD if _IS_FOLDED.search(text) else _SOFT_END
        masked = self._mask_joined(text, published, ends)
        hidden = find_hidden(text, masked)
        shown = say_hidden(masked, hidden) if hidden.patch_altered else masked
        return shown.encode(), hidden.addresses

    def _mask_joined(self, text: str, published: str, ends: re.Pattern[str]) -> str:
        """Mask the addresses that line ends divide, too."""
        lines = ends.split(text)
        if len(lines) == 1:
            return published
        joined = iter(self.documents.publication.publish("".join(lines)))
        pieces, at = [], 0
        for line, end in zip(lines, [*ends.findall(text), ""], strict=True):
            both = zip(published[at : at + len(line)], joined, strict=False)
            pieces += ["".join(MASK if MASK in signs else signs[0] for signs in both), end]
            at += len(line) + len(end)
        return "".join(pieces)


def _read_text(found: AttachmentContent) -> str | None:
    """Return the content if it is plain text in UTF-8 or cp1252 and not encoded data; else None."""
    if len(found.data) > MAX_MASKED or found.type.lower().startswith(REFUSED):
        return None
    for charset in ("utf-8", "cp1252"):
        try:
            text = found.data.decode(charset)
        except UnicodeDecodeError:
            continue
        return None if _NO_TEXT.search(text) or is_encoded(text) else text
    return None
