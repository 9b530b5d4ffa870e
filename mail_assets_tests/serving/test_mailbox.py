"""Messages written for an mbox: read back whole, however hostile what is in them."""

import contextlib
import datetime as dt
import mailbox
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.web.exports import COUNT, name_file, quote_raw, write_message

MESSAGE: dict[str, Any] = {
    "message_id": "a@example.org",
    "lists": ["harbor"],
    "sent_at": "2024-03-04T09:00:00Z",
    "subject": "Whales",
    "from_name": "Ann",
    "from_email": "ann@example.org",
    "recipients": ["harbor@lists.example.org"],
    "cc": [],
    "in_reply_to": [],
    "references": [],
    "body_text": "A text.\n",
    "attachments": [],
}

#: What PostgreSQL can hold.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


def read_back(written: bytes) -> Any:
    """Return the message of an mbox of one, its quoting undone."""
    from_line, _, rest = written.partition(b"\n")
    assert from_line.startswith(b"From mboxrd@z ")
    lines = rest.removesuffix(b"\n").split(b"\n")
    assert not [line for line in lines if line.startswith(b"From ")]
    plain = [line[1:] if line.lstrip(b">").startswith(b"From ") else line for line in lines]
    return message_from_bytes(b"\n".join(plain), policy=policy.default)


def read_text(message: Any) -> str:
    return str(message.get_payload(decode=True).decode())


@pytest.mark.parametrize(
    "body",
    [
        "From here on\n>From there\n>>>From everywhere\n",
        "\nFrom nobody Mon Mar  4 09:00:00 2024\nSubject: another\n\ntext\n",
        "no line end",
        "Ünïcode\u2028in lines\n",
        "",
    ],
)
def test_a_body_comes_back_as_it_was(body: str) -> None:
    message = read_back(write_message({**MESSAGE, "body_text": body}, {}))
    assert read_text(message).rstrip("\n") == body.rstrip("\n")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_no_field_becomes_another(subject: str, name: str, file: str) -> None:
    given = {"subject": subject, "from_name": name, "attachments": [{"name": file, "type": "x/y"}]}
    written = write_message({**MESSAGE, **given}, {COUNT: "1"})
    header, _, body = written.partition(b"\n\n")
    names = [line.split(b":")[0] for line in header.split(b"\n")[1:] if line[:1] not in b" \t"]
    assert names == [
        b"From", b"To", b"Date", b"Subject", b"Message-ID", b"X-List", b"X-Attachment",
        b"X-Export-Messages", b"MIME-Version", b"Content-Type", b"Content-Transfer-Encoding",
    ]  # fmt: skip
    assert body == b"A text.\n\n"


def test_people_and_ids_are_read_back() -> None:
    given = {
        "from_name": 'Jürgen "the whale", of the sea',
        "message_id": "ü 1@example.org\r\nX: y",
        "references": ["1@example.org", "2@example.org"],
        "subject": "Größe " * 40,
    }
    message = read_back(write_message({**MESSAGE, **given}, {}))
    assert message["from"].addresses[0].display_name == given["from_name"]
    assert message["from"].addresses[0].addr_spec == "ann@example.org"
    assert message["references"].split() == ["<1@example.org>", "<2@example.org>"]
    assert message["subject"] == ("Größe " * 40).strip()
    assert "x" not in message
    assert b"Message-ID: <\xc3\xbc1@example.orgX:y>\n" in write_message({**MESSAGE, **given}, {})


def test_whom_a_hidden_message_is_from_is_nobody() -> None:
    hidden = {key: MESSAGE[key] for key in MESSAGE.keys() - {"from_email", "recipients", "cc"}}
    message = read_back(write_message(hidden, {}))
    assert message["from"].addresses[0].addr_spec == "hidden@addresses.invalid"
    assert message["to"] is None


def test_raw_bytes_are_quoted(tmp_path: Path) -> None:
    raw = b"Subject: x\n\nFrom me\n>From you\nend"
    when = dt.datetime(2024, 3, 4, 9, tzinfo=dt.UTC)
    (tmp_path / "mbox").write_bytes(quote_raw(raw, when) * 2)
    with contextlib.closing(mailbox.mbox(tmp_path / "mbox")) as box:
        assert len(box) == 2
    assert quote_raw(raw, when).endswith(b"\n\n>From me\n>>From you\nend\n\n")


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ("a@example.org", "thread-a-example.org.mbox"),
        ("../../etc/passwd", "thread-etc-passwd.mbox"),
        ('x"\r\nSet-Cookie: a=b', "thread-x-Set-Cookie-a-b.mbox"),
        ("\0\u202e", "thread.mbox"),
        ("x" * 1000, f"thread-{'x' * 80}.mbox"),
    ],
)
def test_a_file_has_a_plain_name(about: str, name: str) -> None:
    assert name_file("thread", about, ".mbox") == name
