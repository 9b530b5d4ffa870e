"""Post a message to a webhook in Slack's format, which Mattermost and others take too.

The URL of a webhook is a secret: everyone who knows it may post. It is in no log and no error. That
is why this uses the client of the standard library: httpx logs each URL.
https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

import json
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mail_assets.errors import MailAssetsError
from mail_assets.http.requests import is_loopback

TIMEOUT = 10.0  # seconds
MAX_ANSWER = 200  # characters of a server's answer in an error


class WebhookError(MailAssetsError):
    """A message was not accepted; the text names the cause, and not the URL."""


def check_webhook(url: str) -> None:
    """Raise ValueError, with a short reason, for a URL that is no webhook's; opens nothing."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("must be a URL such as https://hooks.slack.com/services/...") from None
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not secure or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("must be an https:// URL; http:// only for this machine")


def escape(text: str) -> str:
    """Return a text as Slack shows it literally.

    https://docs.slack.dev/messaging/formatting-message-text#escaping
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def post_message(url: str, text: str) -> None:
    """Post a text in Slack's markup.

    Raises:
        WebhookError: the server refuses it, or does not answer.
    """
    request = Request(
        url,
        data=json.dumps({"text": text}).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "mail-assets"},
        method="POST",
    )
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT):
            return
    except HTTPError as error:
        fault = f"HTTP {error.code}: {_first_line(error) or error.reason}"
    except (OSError, HTTPException) as error:
        fault = f"no answer: {getattr(error, 'reason', error)}"
    raise WebhookError(fault.replace(url, "***"))


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an error: it would turn the request into a GET without the message."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def _first_line(error: HTTPError) -> str:
    with error:
        try:
            answer = error.read(4 * MAX_ANSWER).decode("utf-8", "replace")
        except (OSError, HTTPException):  # it broke off
            return ""
    return " ".join(answer.split())[:MAX_ANSWER]
