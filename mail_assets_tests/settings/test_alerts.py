"""The settings of alerts: which URLs are taken, and that the webhook's is never repeated."""

import pytest

from mail_assets.settings.settings import read_alert_url, read_base_url
from mail_assets.settings.values import SettingsError


def test_alerts_are_off_where_nothing_is_set() -> None:
    assert read_alert_url({}) == read_base_url({}, "MAIL_UI_URL", "x") == ""


def test_a_webhook_is_taken_as_it_is() -> None:
    url = "https://hooks.slack.com/services/T0/B0/XYZ"
    assert read_alert_url({"MAIL_ALERT_URL": f" {url}\n"}) == url


def test_a_wrong_webhook_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as error:
        read_alert_url({"MAIL_ALERT_URL": "http://example.org/services/T0/B0/XYZ"})
    assert str(error.value) == (
        "MAIL_ALERT_URL='***': must be an https:// URL; http:// only for this machine"
    )


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        ("https://dagster.example.org/mail", "https://dagster.example.org/mail"),
    ],
)
def test_the_base_url_of_the_ui_ends_without_a_slash(value: str, url: str) -> None:
    assert read_base_url({"MAIL_UI_URL": value}, "MAIL_UI_URL", "http://127.0.0.1:3000") == url


@pytest.mark.parametrize(
    "value",
    [
        *("127.0.0.1:3000", "ftp://example.org", "http://", "http://[::1", "http://a b"),
        *("https://user:password@example.org", "https://example.org/?x", "https://a.org/#b"),
        *("https://a.org/<b>", "https://a.org/a|b"),
    ],
)
def test_any_other_base_url_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"MAIL_UI_URL=.*: must be a base URL such as"):
        read_base_url({"MAIL_UI_URL": value}, "MAIL_UI_URL", "http://127.0.0.1:3000")
