"""Connect to LanceDB in a folder or on S3-like storage."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import lancedb
from lancedb import DBConnection


def connect_lance(uri: str, storage_options: Mapping[str, str] | None = None) -> DBConnection:
    """Return a connection whose every operation sees what other processes have committed."""
    return lancedb.connect(
        uri,
        read_consistency_interval=dt.timedelta(0),
        storage_options=dict(storage_options or {}),
    )
