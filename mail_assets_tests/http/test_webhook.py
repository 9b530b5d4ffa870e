"""Messages to a webhook: posted, refused, and the URL kept secret."""

import logging
import socket
from collections.abc import Iterator

import pytest

from mail_assets.http.requests import WebhookError, check_webhook, escape, post_message
from mail_assets_tests.http.receiver import PATH, Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.mark.parametrize(
    "text", ["plain", "line\nline", "naïve — ✓", "a &amp; b &lt;c&gt;", '\\ "']
)
def test_text_arrives_unchanged(receiver: Receiver, text: str) -> None:
    post_message(receiver.url, text)
    assert receiver.texts == [text]


@pytest.mark.parametrize(
    ("refusal", "fault"),
    [
        ((500, ""), "HTTP 500: Internal Server Error"),
        ((404, "no_service\n"), "HTTP 404: no_service"),
        ((403, "a  long\nanswer " + "x" * 500), f"HTTP 403: a long answer {'x' * 186}"),
        ((302, ""), "HTTP 302: Found"),
        ((307, ""), "HTTP 307: Temporary Redirect"),
    ],
)
def test_refusal_is_an_error_with_the_servers_answer(
    receiver: Receiver, refusal: tuple[int, str], fault: str
) -> None:
    receiver.refusals.append(refusal)
    with pytest.raises(WebhookError) as error:
        post_message(receiver.url, "text")
    assert str(error.value) == fault
    assert receiver.texts == []


def test_missing_server_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(WebhookError, match=r"no answer: .*refused"):
        post_message(f"http://127.0.0.1:{port}{PATH}", "text")


def test_url_is_in_no_log_and_no_error(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    post_message(receiver.url, "text")
    receiver.refusals.append((404, f"nothing at {receiver.url}"))
    with pytest.raises(WebhookError) as error:
        post_message(receiver.url, "text")
    assert str(error.value) == "HTTP 404: nothing at ***"
    assert PATH not in caplog.text


@pytest.mark.parametrize(
    "url",
    ["https://hooks.slack.com/x", "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/x"],
)
def test_webhook_is_https_or_on_this_machine(url: str) -> None:
    check_webhook(url)


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "hooks.slack.com/x", "ftp://example.org", "https:///x", "file:///etc/passwd"),
        *("http://example.org/x", "http://10.0.0.1/x", "https://[::1/x", "https://a:b/x"),
        *("https://exa mple.org", "https://example.org/\n", "https://exämple.org"),
    ],
)
def test_other_urls_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must be ") as error:
        check_webhook(url)
    assert not url or url not in str(error.value)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a & b", "a &amp; b"), ("<!channel>", "&lt;!channel&gt;"), ("&lt;", "&amp;lt;")],
)
def test_text_is_escaped_for_slack(text: str, escaped: str) -> None:
    assert escape(text) == escaped
