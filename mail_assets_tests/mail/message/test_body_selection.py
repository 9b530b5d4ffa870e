"""The choice of the body among the parts."""

import pytest

from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import HTML, PLAIN, multipart, named, raw_message

FOOTER = b"Content-Type: text/plain\n\nlist footer\n"
EMPTY_HTML = b"Content-Type: text/html\n\n<p></p>\n"
NO_HTML = b"Your mail reader does not support HTML."


@pytest.mark.parametrize(
    ("raw", "kind", "text", "names"),
    [
        (PLAIN, "plain", "plain\n", []),
        (HTML, "html", "rich", []),
        (b"\n", "none", "", []),
        (b"\r\n\r\na\r\nb\0\r\n", "plain", "\na\nb\n", []),
        (multipart("alternative", PLAIN, HTML), "plain", "plain\n", []),
        (multipart("alternative", HTML, PLAIN), "plain", "plain\n", []),
        (multipart("alternative", b"\n \n", HTML), "html", "rich", []),
        (multipart("alternative", b"\n" + NO_HTML, HTML), "html", "rich", []),
        (multipart("alternative", b"\n" + NO_HTML), "plain", NO_HTML.decode(), []),
        (multipart("alternative", b"\n" + NO_HTML, EMPTY_HTML), "plain", NO_HTML.decode(), []),
        (multipart("mixed", PLAIN, FOOTER), "plain", "plain\nlist footer\n", []),
        (multipart("mixed", HTML, FOOTER), "html", "rich\nlist footer\n", []),
        (multipart("mixed", PLAIN, HTML), "plain", "plain\n", [""]),
        (
            multipart("mixed", multipart("alternative", PLAIN, HTML, boundary="b2"), FOOTER),
            "plain",
            "plain\nlist footer\n",
            [],
        ),
        (
            multipart("mixed", PLAIN, named("text/plain", "a.txt", b"t")),
            "plain",
            "plain\n",
            ["a.txt"],
        ),
        (multipart("mixed", named("text/plain", "a.txt", b"t", "inline")), "plain", "t", ["a.txt"]),
        (multipart("mixed", named("text/plain", "a.txt", b"t")), "none", "", ["a.txt"]),
        (
            multipart("mixed", PLAIN, named("image/png", "a.png", b"\x89")),
            "plain",
            "plain\n",
            ["a.png"],
        ),
        (
            multipart("signed", PLAIN, b"Content-Type: application/pgp-signature\n\nx"),
            "plain",
            "plain\n",
            [],
        ),
        (
            multipart("signed", PLAIN, named("application/pkcs7-signature", "smime.p7s", b"x")),
            "plain",
            "plain\n",
            [],
        ),
        (
            multipart("mixed", PLAIN, b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"),
            "plain",
            "plain\n",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"),
            "plain",
            "inner",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nno headers"),
            "plain",
            "no headers",
            ["message"],
        ),
        (
            multipart("digest", b"\nSubject: a\n\none", b"\nSubject: b\n\ntwo"),
            "plain",
            "one\ntwo",
            ["message", "message"],
        ),
        (
            multipart("mixed", PLAIN, b"Content-Type: application/ms-tnef\n\nx"),
            "plain",
            "plain\n",
            ["winmail.dat"],
        ),
        (b"Content-Type: application/pgp; format=text\n\nsigned\n", "plain", "signed\n", []),
    ],
)
def test_body_and_attachments_are_told_apart(
    raw: bytes, kind: str, text: str, names: list[str]
) -> None:
    found = parse_message(raw_message(b"Subject: s\n" + raw), month="2026-01", dialect="pg")
    assert (found.body_kind, found.body_text) == (kind, text)
    assert [attachment.name for attachment in found.attachments] == names
