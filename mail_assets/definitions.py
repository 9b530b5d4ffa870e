"""The module that `dg` and `dagster` load: pyproject.toml and `-m mail_assets.definitions` name it."""

from mail_assets.defs.definitions import defs

__all__ = ["defs"]
