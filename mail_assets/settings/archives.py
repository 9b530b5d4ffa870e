"""How long archives are kept that others have replaced."""

import re
from collections.abc import Mapping

from mail_assets.settings.errors import SettingsError

#: Days: long enough for a monthly look at what vanished.
KEEP_ARCHIVES = 30


def read_keep_archives(env: Mapping[str, str]) -> int:
    """Return MAIL_KEEP_ARCHIVES: the days that a former archive is kept; 0: not at all.

    Raises:
        SettingsError: it is not a whole number of days.
    """
    value = env.get("MAIL_KEEP_ARCHIVES") or str(KEEP_ARCHIVES)
    if not re.fullmatch("[0-9]{1,5}", value):
        raise SettingsError(
            "MAIL_KEEP_ARCHIVES", value, "must be a number of days; 0: not kept at all"
        )
    return int(value)
