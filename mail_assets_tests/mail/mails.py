"""Hand-written mail for tests."""

from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message

LINE = b"From list-owner@example.org Mon Jan 05 15:18:12 2026\n"
GIT_LINE = b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"

HEAD = b"""\
From: Jo Doe <jo@example.org>
To: hackers@lists.example.org, Ann <ann@example.org>
Cc: bo@example.org
Date: Mon, 5 Jan 2026 15:18:12 +0100
Subject: Re: [HACKERS] fix x
Message-ID: <1@example.org>
In-Reply-To: <0@example.org>
References: <00@example.org> <0@example.org>
List-Id: Hackers <Hackers.lists.example.org>
"""
PLAIN = b"Content-Type: text/plain; charset=utf-8\n\nplain\n"
HTML = b"Content-Type: text/html; charset=utf-8\n\n<p>rich</p>\n"
PATCH = b"--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"


def raw_message(raw: bytes, from_line: bytes = b"") -> RawMessage:
    """A message as returned by the splitter, without warnings."""
    return RawMessage(0, len(raw), from_line, raw, truncated=False, suspicious=False)


def read_mail(
    raw: bytes, from_line: bytes = b"", dialect: str = "pg", charset: str = ""
) -> Message:
    """Parse a message of an archive of January 2026."""
    message = raw_message(raw, from_line)
    return parse_message(message, month="2026-01", dialect=dialect, charset=charset)


def head(number: int) -> bytes:
    return (
        f"Message-ID: <{number}@example.org>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
        f"Subject: s{number}\n\n"
    ).encode()


def multipart(kind: str, *parts: bytes, boundary: str = "b1") -> bytes:
    inner = b"".join(f"--{boundary}\n".encode() + part + b"\n" for part in parts)
    top = f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n'.encode()
    return top + inner + f"--{boundary}--\n".encode()


def named(media: str, name: str, data: bytes, disposition: str = "attachment") -> bytes:
    top = f"Content-Type: {media}\nContent-Disposition: {disposition}; filename={name}\n\n"
    return top.encode() + data
