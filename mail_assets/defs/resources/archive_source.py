"""Where archives come from, for each list."""

import dagster as dg
from pydantic import Field, PrivateAttr

from mail_assets.sources.source import ArchiveSource, HttpOptions, open_source


class ArchiveSourceResource(dg.ConfigurableResource):
    """The archives of each list of lists.toml: a folder, an HTTP server or an S3 prefix."""

    sources: dict[str, str] = Field(description="list -> folder, https:// or s3:// URL")
    starts: dict[str, str] = Field(description="list -> its first month, YYYY-MM")
    http_auth: str = Field(default="", description="MAIL_HTTP_AUTH, USER:PASSWORD")
    _opened: dict[str, ArchiveSource] = PrivateAttr(default_factory=dict)

    def of(self, list_name: str) -> ArchiveSource:
        """Return the source of a list, one instance a run: it may remember its listing."""
        if list_name not in self._opened:
            self._opened[list_name] = open_source(
                list_name,
                self.sources[list_name],
                start=self.starts[list_name],
                options=HttpOptions(auth=self.http_auth),
            )
        return self._opened[list_name]
