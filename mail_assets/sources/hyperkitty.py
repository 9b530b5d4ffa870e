"""Archives of HyperKitty (Mailman 3): its export as gzipped mbox, month by month.

Without `start` and `end` it exports the whole list, so both are always there. HyperKitty writes
each message anew: its own header, the fields From, To, Subject, Date, Message-ID and In-Reply-To,
and addresses in the body as `jo(a)example.org`.
(hyperkitty/views/mlist.py, export_mbox; hyperkitty/models/email.py, as_message)
"""

from pathlib import Path

from mail_assets.month import ListMonth, next_month
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.http_query import drop_empty, months_since
from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.list_pages import hyperkitty_export
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged


class HyperKittySource(ArchiveSource):
    """A list of HyperKitty, by the URL of its page: https://host/archives/list/NAME@DOMAIN/."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month; asks nobody, so some may have no archive."""
        return self.by_list_month(months_since(self._start))

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's export; None where it has no message. See ArchiveSource."""
        days = f"start={month.month}-01&end={next_month(month.month)}-01"  # the end is left out
        url = f"{hyperkitty_export(self.url)}-{month.month}.mbox.gz?{days}"
        found = self._reader.download(month, url, target, known)
        if found is None:
            raise self.error(
                month,
                f"{url} is not there: the server has no such list, or its administrator has"
                " switched the export off",
            )
        return drop_empty(found)
