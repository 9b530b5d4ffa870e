"""Where archives come from, for each list."""

from pathlib import Path

import dagster as dg
from pydantic import Field, PrivateAttr

from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.open import open_source
from mail_assets.sources.source import ArchiveSource


class ArchiveSourceResource(dg.ConfigurableResource):
    """The archives of each list of lists.toml, wherever they are kept."""

    sources: dict[str, str] = Field(description="list -> its source, as lists.toml names it")
    starts: dict[str, str] = Field(description="list -> its first month, YYYY-MM")
    cache: str = Field(description="folder for mirrors, and for what sources have found out")
    http_auth: str = Field(default="", description="MAIL_HTTP_AUTH, USER:PASSWORD")
    _opened: dict[str, ArchiveSource] = PrivateAttr(default_factory=dict)

    def of(self, list_name: str) -> ArchiveSource:
        """Return the source of a list, one instance a run: it may remember its listing."""
        if list_name not in self._opened:
            self._opened[list_name] = self._open(list_name, HttpOptions(auth=self.http_auth))
        return self._opened[list_name]

    def for_listing(self, list_name: str, timeout: float) -> ArchiveSource:
        """Return a source that asks once and waits `timeout` seconds: a sensor comes again."""
        return self._open(
            list_name,
            HttpOptions(
                auth=self.http_auth, attempts=1, connect_timeout=timeout, read_timeout=timeout
            ),
        )

    def _open(self, list_name: str, options: HttpOptions) -> ArchiveSource:
        source, start = self.sources[list_name], self.starts[list_name]
        return open_source(list_name, source, start=start, options=options, cache=Path(self.cache))
