"""The entry point that Dagster's tools look for: `dg`, `dagster dev`, workspace.yaml.

What does not live here: the definitions themselves (defs/definitions.py).
"""

from mail_assets.defs.definitions import defs

__all__ = ["defs"]
