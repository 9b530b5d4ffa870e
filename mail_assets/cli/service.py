"""The search service of the commands that serve others."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mail_assets.cli.searcher import search_settings
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.serving.documents import Documents


@contextmanager
def open_documents(settings: Settings) -> "Iterator[Documents]":
    """Yield the documents of the archive of the settings, as they may be published."""
    from mail_assets.encoding.cores import count_physical_cores
    from mail_assets.serving.documents import Documents
    from mail_assets.serving.publication import Publication
    from mail_assets.serving.service import STATEMENT_SECONDS, SearchService, ServiceOptions

    search = replace(search_settings(settings), statement_seconds=STATEMENT_SECONDS)
    # two a core: while one waits for the database, another can run
    searchers = 2 * count_physical_cores()
    options = ServiceOptions(
        search, settings.forget_key, settings.store, searchers, settings.web_audit
    )
    service = SearchService(options)
    try:
        yield Documents(service, Publication(settings.web_addresses))
    finally:
        service.close()
