"""Which index a command fills: the static one that is there in minutes, or the model's own."""

from dataclasses import replace

from mail_assets.encoding.local_model import DEFAULT_PRECISION, STATIC
from mail_assets.encoding.remote_model import REMOTE_PRECISION
from mail_assets.settings.environment import Settings
from mail_assets.settings.errors import SettingsError


def use_static(settings: Settings) -> Settings:
    """Return settings whose runs fill the static index of the configured model.

    Raises:
        SettingsError: the model is on a server, or search asks an index of the model already.
    """
    from mail_assets.tables.indexes import live_index

    if settings.precision == REMOTE_PRECISION:
        raise SettingsError("--fast", settings.encoder, "needs a model that computes here")
    with settings.database.connect("index") as connection:
        live = live_index(connection, settings.vectors)
    if live and live.precision != STATIC:
        raise SettingsError(
            "--fast", live.name, "is live already, and ranks better: leave --fast out"
        )
    return replace(settings, precision=STATIC)


def use_model(settings: Settings) -> Settings:
    """Return settings whose runs fill the index that a static one stands in for."""
    if settings.precision != STATIC:
        return settings
    return replace(settings, precision=DEFAULT_PRECISION)
