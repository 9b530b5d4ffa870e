"""Variables that are whole numbers."""

import re
from collections.abc import Mapping

from mail_assets.settings.errors import SettingsError


def read_number(env: Mapping[str, str], name: str, default: int, rule: str) -> int:
    """Return a variable of one to five digits; `rule` says in an error what is allowed.

    Raises:
        SettingsError: it is written otherwise.
    """
    value = env.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,5}", value):
        raise SettingsError(name, value, rule)
    return int(value)
