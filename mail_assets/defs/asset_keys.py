"""The keys of the assets: `mail/NAME`, so that they stand apart in an instance of many projects."""

import dagster as dg

PREFIX = "mail"


def asset_key(name: str) -> dg.AssetKey:
    """Return the key of the asset `name`."""
    return dg.AssetKey([PREFIX, name])
