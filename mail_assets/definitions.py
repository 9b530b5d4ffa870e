"""The entry point of `dg` and `dagster`, which pyproject.toml names; `-m mail_assets.definitions`.

What does not live here: the definitions themselves (defs/definitions.py).
"""

from mail_assets.defs.definitions import defs

__all__ = ["defs"]
