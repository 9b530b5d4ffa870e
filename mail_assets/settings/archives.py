"""How long archives are kept that others have replaced."""

from collections.abc import Mapping

from mail_assets.settings.numbers import read_number

#: Days: long enough for a monthly look at what vanished.
KEEP_ARCHIVES = 30


def read_keep_archives(env: Mapping[str, str]) -> int:
    """Return MAIL_KEEP_ARCHIVES: the days that a former archive is kept; 0: not at all.

    Raises:
        SettingsError: it is not a whole number of days.
    """
    return read_number(env, "MAIL_KEEP_ARCHIVES", KEEP_ARCHIVES, "days; 0: not kept at all")
