"""Owners and freshness: what may be set, and mistakes named with the remedy."""

import pytest

from mail_assets.settings.settings import FRESH_HOURS, read_fresh_hours, read_owners
from mail_assets.settings.values import SettingsError


@pytest.mark.parametrize(
    ("value", "owners"),
    [
        ("", ()),
        (" , ", ()),
        ("ann@example.org", ("ann@example.org",)),
        ("team:mail, ann@example.org", ("team:mail", "ann@example.org")),
    ],
)
def test_owners_are_separated_by_commas(value: str, owners: tuple[str, ...]) -> None:
    assert read_owners({"MAIL_OWNERS": value}) == owners


@pytest.mark.parametrize("value", ["ann", "team:", "ann@example", "team:mail;ann@example.org,x"])
def test_what_is_no_owner_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_OWNERS=.* an e-mail address or team:NAME"):
        read_owners({"MAIL_OWNERS": value})


@pytest.mark.parametrize(("value", "hours"), [("", FRESH_HOURS), ("0", 0), ("168", 168)])
def test_freshness_is_a_number_of_hours(value: str, hours: int) -> None:
    assert read_fresh_hours({"MAIL_FRESH_HOURS": value}) == hours


@pytest.mark.parametrize("value", ["daily", "-1", "1.5", "999999"])
def test_what_is_no_number_of_hours_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_FRESH_HOURS=.* must be 0 to 99999 hours; 0: n"):
        read_fresh_hours({"MAIL_FRESH_HOURS": value})
