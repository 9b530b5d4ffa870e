"""The module that `dg` and `dagster` load, by pyproject.toml or `-m mail_assets.definitions`."""

from mail_assets.defs.definitions import defs

__all__ = ["defs"]
