"""The settings of alerts: where failures are posted, and where the Dagster UI is."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from mail_assets.http.webhook import check_webhook
from mail_assets.settings.errors import SettingsError


def read_alert_url(env: Mapping[str, str]) -> str:
    """Return MAIL_ALERT_URL, the URL of a webhook; empty where no alerts are wanted.

    Raises:
        SettingsError: it cannot be a webhook's. The value is a secret and is not repeated.
    """
    url = env.get("MAIL_ALERT_URL", "").strip()
    if url:
        try:
            check_webhook(url)
        except ValueError as error:
            raise SettingsError("MAIL_ALERT_URL", "***", str(error)) from None
    return url


def read_base_url(env: Mapping[str, str], name: str, example: str) -> str:
    """Return the URL of a site without a slash at its end, or "".

    Raises:
        SettingsError: it is no http:// or https:// URL of a place.
    """
    url = env.get(name, "").strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an IPv6 address without its bracket, a port that is no number
        usable = False
    if url and (not usable or any(sign in url for sign in " @?#<>|")):
        raise SettingsError(name, url, f"must be a base URL such as {example}")
    return url
