"""Variables that are whole numbers."""

import re
from collections.abc import Mapping

from mail_assets.settings.errors import SettingsError

#: Where nothing else bounds a number.
MOST = 99_999


def read_number(
    env: Mapping[str, str], name: str, default: int, unit: str, most: int = MOST
) -> int:
    """Return a variable from 0 to `most`; `unit` says in an error of what, and what 0 means.

    Raises:
        SettingsError: it is written otherwise.
    """
    value = env.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", value) or int(value) > most:
        raise SettingsError(name, value, f"must be 0 to {most} {unit}")
    return int(value)
