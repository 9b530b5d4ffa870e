"""The list that a message names."""

import pytest

from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import raw_message


@pytest.mark.parametrize(
    ("field", "list_id"),
    [
        (b"List-Id: <a.example.org>", "a.example.org"),
        (b"List-Id: a.example.org", "a.example.org"),
        (b"List-Id: The list a. <a@example.org>", "a.example.org"),
        (b"List-Id: The list of a a.example.org", "a.example.org"),
        (b"List-Id: A <a.\n example.org>", "a.example.org"),
        (b"X-Mailing-List: a@vger.example.org", "a.vger.example.org"),
        (b"Sender: owner-a@example.org", "a.example.org"),
        (b"Sender: a-owner+M123@example.org", "a.example.org"),
        (b"X-Mailing-List: a\nSender: owner-b@example.org", "b.example.org"),
        (b"Sender: jo@example.org", ""),
        (b"X: y", ""),
    ],
)
def test_the_list_is_found(field: bytes, list_id: str) -> None:
    assert (
        parse_message(raw_message(field + b"\n\nx"), month="2026-01", dialect="pg").list_id
        == list_id
    )
