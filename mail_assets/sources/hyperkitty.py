"""Archives of HyperKitty (Mailman 3): its export as gzipped mbox, month by month.

Without `start` and `end` HyperKitty exports the whole list, so both are always sent. It writes each
message again: From, To, Subject, Date, Message-ID and In-Reply-To of the header, `jo(a)host` for
addresses in the body, and a new MIME boundary at every export. The boundary is replaced by one that
depends on the message only, so that a message stays equal.
(hyperkitty/views/mlist.py, export_mbox; hyperkitty/models/email.py, as_message; the setting
HYPERKITTY_MBOX_EXPORT, from 1.3.6 on, switches the export off)
"""

import re
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from mail_assets.mail.archive.compression import ArchiveError, unpacked, unpacked_path
from mail_assets.mail.archive.mbox import find_dialect, split_mbox
from mail_assets.month import ListMonth, next_month
from mail_assets.sources.archive_file import is_empty, save_archive
from mail_assets.sources.source import Fetched, Unchanged
from mail_assets.sources.urls import hyperkitty_export
from mail_assets.sources.web_pages import UnlistedSource

# The form of Python's email package (email/generator.py, _make_boundary), in the field that
# HyperKitty writes itself; a quoted one in a body stays.
_BOUNDARY = re.compile(rb'^Content-Type: multipart/mixed;\s{1,3}boundary="(={15}\d{19}==)"', re.M)
_DIGITS = 19
_DIALECT = "plain"  # by default; older versions write `jo at host`


class HyperKittySource(UnlistedSource):
    """A list of HyperKitty, by the URL of its page: https://host/archives/list/NAME@DOMAIN/."""

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's export; None if it has no message. See ArchiveSource."""
        days = f"start={month.month}-01&end={next_month(month.month)}-01"  # the end is excluded
        url = f"{hyperkitty_export(self.url)}-{month.month}.mbox.gz?{days}"
        export = target.with_name(f"{target.name}.export")
        try:
            found = self.reader.download(month, url, export, "")
            if found is None:
                raise self.error(
                    month,
                    f"{url} is not there: the server has no such list, or its administrator has"
                    " switched the export off",
                )
            if is_empty(export):
                return None
            size, digest = save_archive(_settle_boundaries(export, url), target)
        except ArchiveError as error:
            raise self.error(month, str(error)) from error
        finally:
            export.unlink(missing_ok=True)
            unpacked_path(export).unlink(missing_ok=True)
        version = f"sha256:{digest}"
        if version == known:
            target.unlink()
            return Unchanged(known, found.url)
        return Fetched(target, version, size, digest, found.url)


def settle_boundary(raw: bytes) -> bytes:
    """Return a message with a boundary that is equal in every export."""
    header_end = raw.find(b"\n\n")
    found = _BOUNDARY.search(raw, 0, max(header_end, 0))
    if found is None:
        return raw
    number = int(sha256(raw.replace(found[1], b"")).hexdigest(), 16) % 10**_DIGITS
    return raw.replace(found[1], b"===============%0*d==" % (_DIGITS, number))


def _settle_boundaries(path: Path, url: str) -> Iterator[bytes]:
    """Yield an export of `url` again, gzipped without a time, with settled boundaries."""
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    with unpacked(path) as data:
        for message in split_mbox(data, find_dialect(data) or _DIALECT, name=url):
            entry = data[message.offset : message.offset + message.length]
            line, end, raw = entry.partition(b"\n")
            yield compressor.compress(line + end + settle_boundary(raw) + b"\n")
    yield compressor.flush()
