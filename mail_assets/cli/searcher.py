"""The searcher that a command asks."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.search.open import SearchSettings
    from mail_assets.search.searcher import Searcher
    from mail_assets.tables.indexes import IndexRecord


def open_configured_searcher(
    settings: Settings, index: "IndexRecord | None" = None
) -> "AbstractContextManager[Searcher]":
    """Open a searcher over the database and bucket of the settings.

    It asks the live index, or the one given, live or not.
    """
    from mail_assets.search.open import open_searcher

    wanted = search_settings(settings)
    if index is not None:
        wanted = replace(wanted, encoder=index.encoder, precision=index.precision)
    return open_searcher(wanted, pinned=index is not None)


def search_settings(settings: Settings) -> "SearchSettings":
    """Return what a searcher is opened with."""
    from mail_assets.search.open import SearchSettings

    return SearchSettings(
        settings.database,
        settings.vectors,
        settings.words,
        settings.encoder,
        settings.precision,
        settings.model_cache,
        settings.languages,
    )
