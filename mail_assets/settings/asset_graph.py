"""What the asset graph says of the assets: who owns them, and when they are overdue."""

import re
from collections.abc import Mapping

from mail_assets.settings.errors import SettingsError
from mail_assets.settings.numbers import read_number

#: Two days: one missed run of the daily schedule does not count, the second does.
FRESH_HOURS = 48

#: What Dagster accepts as an owner.
_OWNER = re.compile(r"team:.+|[^@\s]++@[^@\s.]++(?:\.[^@\s.]++)+")


def read_owners(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return MAIL_OWNERS: e-mail addresses and "team:NAME", separated by commas.

    Raises:
        SettingsError: an owner is written otherwise.
    """
    owners = [owner.strip() for owner in env.get("MAIL_OWNERS", "").split(",") if owner.strip()]
    for owner in owners:
        if not _OWNER.fullmatch(owner):
            raise SettingsError("MAIL_OWNERS", owner, "an owner is an e-mail address or team:NAME")
    return tuple(owners)


def read_fresh_hours(env: Mapping[str, str]) -> int:
    """Return MAIL_FRESH_HOURS: the hours after which archives are overdue; 0: they never are.

    Raises:
        SettingsError: it is not a whole number of hours.
    """
    return read_number(env, "MAIL_FRESH_HOURS", FRESH_HOURS, "hours; 0: never overdue")
