"""The keys of the assets: `mail/NAME`, apart from those of other projects in the same instance."""

import dagster as dg

PREFIX = "mail"

#: One group, which the UI shows unfolded: of several it shows closed boxes. A tag has the layer.
GROUP = "mail"


def asset_key(name: str) -> dg.AssetKey:
    """Return the key of the asset `name`."""
    return dg.AssetKey([PREFIX, name])
