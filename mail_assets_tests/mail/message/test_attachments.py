"""Attachments, and the patches among them."""

import hashlib

import pytest

from mail_assets.mail.message import attachments as module
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import PATCH, PLAIN, multipart, named, raw_message


def read(raw: bytes) -> Message:
    return parse_message(raw_message(raw), month="2026-01", dialect="pg")


def test_attachment_is_described_by_its_decoded_bytes() -> None:
    part = named("application/pdf", "a.pdf\nContent-Transfer-Encoding: base64", b"aGVsbG8=")
    (found,) = read(multipart("mixed", PLAIN, part)).attachments
    assert (found.name, found.type, found.size) == ("a.pdf", "application/pdf", 5)
    assert found.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert (found.position, found.is_patch) == (1, False)


@pytest.mark.parametrize(
    ("media", "name", "data", "is_patch"),
    [
        ("text/x-diff", "x", PATCH, True),
        ("text/x-patch; charset=latin1", "x", PATCH, True),
        ("application/octet-stream", "v1-0001-x.patch", PATCH, True),
        ("text/plain", "x.DIFF", PATCH, True),
        ("text/plain", "x.txt", PATCH, True),
        ("text/plain", "x.txt", b"text\n\n*** a/x.c\tMon\n--- b/x.c\tTue\n", True),
        ("text/plain", "x.txt", b"Index: x.c\n====\n", False),
        ("text/plain", "notes.txt", b"--- \nno patch\n", False),
        ("application/gzip", "x.patch.gz", PATCH, False),
    ],
)
def test_patches_are_known_by_type_name_or_content(
    media: str, name: str, data: bytes, is_patch: bool
) -> None:
    message = read(multipart("mixed", PLAIN, named(media, name, data)))
    assert [found.is_patch for found in message.attachments] == [is_patch]
    assert message.patch_texts == ((data.decode(),) if is_patch else ())


def test_patch_text_is_cut_at_the_limit_of_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PATCH_TEXT", len(PATCH) + 3)
    parts = [named("text/x-diff", "x", PATCH)] * 2
    found = read(multipart("mixed", PLAIN, *parts))
    assert found.patch_texts == (PATCH.decode(), "---")
    assert found.flags == ("date_repaired", "generated_id", "text_capped")


@pytest.mark.parametrize(
    ("media", "name", "data", "is_patch"),
    [
        ("application/octet-stream", "fix.patch.txt", PATCH, True),
        ("application/octet-stream", "0001-fix", PATCH, True),
        ("application/octet-stream", "0001-fix", b"From 0123456 Mon Sep 17\n\n" + PATCH, True),
        ("application/x-diff", "a.dif", PATCH, True),
        ("text/x-c-diff", "a", PATCH, True),
        ("application/vnd.git-patch", "a", PATCH, True),
        ("application/octet-stream", "a.dif", PATCH, True),
        ("application/x-unknown", "a", b"diff --git a/x b/x\n" + PATCH, True),
        ("application/octet-stream", "a", b"diff --cc x\n" + PATCH, True),
        ("application/octet-stream", "a.diff.1", b"x", True),
        ("application/octet-stream", "a.dif", b"words\n", False),
        ("application/octet-stream", "a", b"\0" + PATCH, False),
        ("application/pdf", "a.pdf", PATCH, False),
        ("application/octet-stream", "a.patch.gz", b"\x1f\x8b\0", False),
        ("application/octet-stream", "patch", b"--- a rule\nand words\n", False),
    ],
)
def test_patch_is_known_by_what_it_holds(
    media: str, name: str, data: bytes, is_patch: bool
) -> None:
    message = read(multipart("mixed", PLAIN, named(media, name, data)))
    assert [found.is_patch for found in message.attachments] == [is_patch]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ("Content-Disposition: attachment; filename=my fix v2.patch", "my fix v2.patch"),
        ("Content-Disposition: attachment; filename=my fix.patch; size=9", "my fix.patch"),
        ("Content-Disposition: attachment;\n filename=my\n fix.patch", "my fix.patch"),
        ("Content-Disposition: attachment; filename=my fix.patch size=9", "my fix.patch"),
        ("Content-Type: text/plain; name=my fix.patch; charset=utf-8", "my fix.patch"),
        ("Content-Type: text/plain; charset=utf-8 name=fix.patch", "fix.patch"),
        ('Content-Disposition: attachment; filename="C:\\\\tmp\\\\fix.patch"', "fix.patch"),
        ('Content-Disposition: attachment; filename="C:\\tmp\\fix.patch"', "fix.patch"),
        ("Content-Disposition: attachment; filename=../../fix (2).patch", "fix (2).patch"),
        ('Content-Disposition: attachment; filename*0="my "; filename*1=fix.patch', "my fix.patch"),
        ("Content-Disposition: attachment; filename*=utf-8''my%20fix.patch", "my fix.patch"),
        ("Content-Disposition: attachment; filename==?utf-8?q?my_fix.patch?=", "my fix.patch"),
    ],
)
def test_name_of_a_file_may_have_blanks_and_folders(fields: str, name: str) -> None:
    part = f"{fields}\n\n".encode() + PATCH
    (found,) = read(multipart("mixed", PLAIN, part)).attachments
    assert (found.name, found.is_patch) == (name, True)
