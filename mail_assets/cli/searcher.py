"""The searcher that a command asks."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.search.searcher import Searcher
    from mail_assets.tables.indexes import IndexRecord


def open_configured_searcher(
    settings: Settings, index: "IndexRecord | None" = None
) -> "AbstractContextManager[Searcher]":
    """Open a searcher over the database and bucket of the settings.

    It asks the live index, or the one given, live or not.
    """
    from mail_assets.search.open import SearchSettings, open_searcher

    wanted = SearchSettings(
        settings.database,
        settings.vectors,
        settings.words,
        index.encoder if index else settings.encoder,
        index.precision if index else settings.precision,
        settings.model_cache,
        settings.languages,
    )
    return open_searcher(wanted, pinned=index is not None)
