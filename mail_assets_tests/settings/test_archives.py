"""MAIL_KEEP_ARCHIVES: how long former archives are kept."""

import pytest

from mail_assets.settings.settings import read_keep_archives
from mail_assets.settings.values import SettingsError


@pytest.mark.parametrize(("value", "days"), [("", 30), ("0", 0), ("7", 7)])
def test_days_are_a_number(value: str, days: int) -> None:
    assert read_keep_archives({"MAIL_KEEP_ARCHIVES": value}) == days


@pytest.mark.parametrize("value", ["-1", "a week", "1.5", "٣"])
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(
        SettingsError, match=r"MAIL_KEEP_ARCHIVES=.* must be 0 to 99999 days; 0: not kept"
    ):
        read_keep_archives({"MAIL_KEEP_ARCHIVES": value})
