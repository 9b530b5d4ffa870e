"""Archives of Pony Mail Foal: its mbox of a month, and the months that its statistics name.

Without a month it sends the last 30 days. `date=YYYY-MM` would leave out the first and the last
second of a month, `d=YYYY-MM` does not. (server/endpoints/mbox.py and stats.py,
server/plugins/defuzzer.py)
"""

import json
from pathlib import Path
from urllib.parse import urlencode

from mail_assets.month import ListMonth, is_month
from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, Unchanged
from mail_assets.sources.urls import ponymail_api
from mail_assets.sources.web_pages import drop_empty

# RecursionError: nested brackets; OverflowError: a count of 1e999
_NO_STATISTICS = (
    *(ValueError, KeyError, TypeError, AttributeError),
    *(RecursionError, OverflowError),
)


class PonymailSource(ArchiveSource):
    """A list of Pony Mail, by the URL of its page: https://HOST/list.html?NAME@DOMAIN.

    A version is the number of a month's messages. It shows that some are new, but does not prove
    that nothing has changed, so a fetch always downloads.
    """

    listing_proves = False

    def __init__(self, list_name: str, url: str, options: HttpOptions) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._api, self._names = ponymail_api(url)
        self._months: dict[str, str] | None = None

    def versions(self) -> dict[ListMonth, str]:
        """Request the list's statistics; return month -> number of messages."""
        self._months = self._read_months()
        return self.by_list_month(self._months)

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's mbox. See ArchiveSource."""
        if self._months is None:
            self._months = self._read_months()
        version = self._months.get(month.month)
        if version is None:
            return None
        url = f"{self._api}mbox.lua?{urlencode({**self._names, 'd': month.month})}"
        found = drop_empty(self._reader.download(month, url, target, ""))
        if not isinstance(found, Fetched):
            raise self.error(
                month, f"{url} has no message, where the statistics count {version}; try later"
            )
        return found._replace(version=version)

    def _read_months(self) -> dict[str, str]:
        url = f"{self._api}stats.lua?{urlencode({**self._names, 'quick': '1'})}"
        data, _ = self._reader.read_file(url)
        try:
            months = json.loads(data or b"{}")["active_months"].items()
            found = {month: f"{int(count)} messages" for month, count in months if is_month(month)}
        except _NO_STATISTICS as error:
            raise self.error(
                None, f"{url} has no statistics of Pony Mail Foal; check the list's source"
            ) from error
        if not found:  # the answer for an unknown list is the same
            raise self.error(None, f"{url} counts no message that all may read; check the name")
        return dict(sorted(found.items()))
