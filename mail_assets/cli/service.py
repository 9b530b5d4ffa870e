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
def open_documents(settings: Settings, processes: int = 0) -> "Iterator[Documents]":
    """Yield the documents of the archive of the settings, as they may be published.

    Searches run in so many processes, or in threads of this one.
    """
    from mail_assets.encoding.cores import count_physical_cores
    from mail_assets.serving.documents import Documents
    from mail_assets.serving.publication import Publication
    from mail_assets.serving.search_slots import STATEMENT_SECONDS
    from mail_assets.serving.service import SearchService, ServiceOptions

    search = replace(search_settings(settings), statement_seconds=STATEMENT_SECONDS)
    options = ServiceOptions(
        search,
        settings.forget_key,
        settings.store,
        # two threads a core: while one waits for the database, another can run
        searchers=processes or 2 * count_physical_cores(),
        audit=settings.web_audit,
        in_processes=processes > 0,
    )
    service = SearchService(options)
    try:
        yield Documents(service, Publication(settings.web_addresses))
    finally:
        service.close()
