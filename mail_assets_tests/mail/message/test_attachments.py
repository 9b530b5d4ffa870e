"""Attachments, and the patches among them."""

import base64
import bz2
import gzip
import hashlib
import lzma

import pytest
import zstandard

from mail_assets.mail.archive.compression import MAX_STREAMS
from mail_assets.mail.message import body as module
from mail_assets.mail.message.body import PatchFile, read_patch_files
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
        ("application/gzip", "x.patch.gz", PATCH, True),
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
        ("application/octet-stream", "a.patch.gz", b"\x1f\x8b\0", True),
        ("application/octet-stream", "a.tar.gz", b"\x1f\x8b\0", False),
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


PACK = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
GZ = PACK["gz"](PATCH)
LONG = PATCH + b"".join(b"%x\n" % n**9 for n in range(3_000))


def packed(media: str, name: str, data: bytes) -> bytes:
    """A compressed part as mail programs send it."""
    return named(f"{media}\nContent-Transfer-Encoding: base64", name, base64.encodebytes(data))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    ("media", "name"),
    [
        ("application/octet-stream", "v3-0001-Foo.patch.{}"),
        ("application/x-{}", "FIX.DIFF.{}"),
        ("application/{}", "crane.{}"),
        ("application/x-unknown", ""),
        ("text/x-patch; charset=utf-8", "fix.patch.2.{}"),
        ("application/octet-stream", "named-wrongly.patch"),
        ("application/octet-stream", "named-wrongly.patch.bz2"),
    ],
)
def test_compressed_patch_is_read(suffix: str, media: str, name: str) -> None:
    name = name.format(suffix)
    raw = multipart("mixed", PLAIN, packed(media.format(suffix), name, PACK[suffix](PATCH)))
    message = read(raw)
    assert [(one.name, one.is_patch) for one in message.attachments] == [(name, True)]
    assert message.attachments[0].size == len(PACK[suffix](PATCH))
    assert message.patch_texts == (PATCH.decode(),)
    assert read_patch_files(raw) == (PatchFile(name, PATCH.decode()),)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("dmesg.gz", PACK["gz"](b"words\n")),
        ("list.mbox.gz", GZ),
        ("cranes.tar.gz", PACK["gz"](b"crane.patch".ljust(512, b"\0") + PATCH)),
        ("twice.gz.gz", PACK["gz"](GZ)),
        ("config.xz", b"\xfd7zXZ\0damage"),
        ("late.gz", PACK["gz"](b"words\n" * 20_000 + PATCH)),
    ],
)
def test_other_compressed_files_are_no_patches(name: str, data: bytes) -> None:
    message = read(multipart("mixed", PLAIN, packed("application/octet-stream", name, data)))
    assert [found.is_patch for found in message.attachments] == [False]
    assert message.patch_texts == ()


@pytest.mark.parametrize(
    ("data", "text", "fault"),
    [
        (GZ + b"trailing garbage", PATCH, ""),
        (GZ + bytes(512), PATCH, ""),
        (PACK["gz"](PATCH[:20]) + PACK["gz"](PATCH[20:]), PATCH, ""),
        (GZ[:-9], PATCH[:-1], "gzip data is cut off"),
        (GZ[:-4], PATCH, "gzip data is cut off"),
        (GZ[:12], PATCH[:1], "gzip data is cut off"),
        (GZ[:-8] + bytes(8), b"", "gzip data is damaged"),
        (GZ + b"\x1f\x8bjunk", PATCH, "gzip data is damaged"),
        (PACK["bz2"](PATCH)[:-3], PATCH, "bzip2 data is cut off"),
        (b"BZh9junk", b"", "bzip2 data is damaged"),
        (PACK["xz"](PATCH)[:-1], PATCH, "xz data is cut off"),
        (PACK["zst"](PATCH)[:9], b"", "zstd data is cut off"),
        (PACK["gz"](GZ), b"", "the file unpacks to no text"),
        (PACK["gz"](b"crane.c".ljust(512, b"\0") + PATCH), b"", "the file unpacks to no text"),
        (b"PK\x03\x04\0\0" + PATCH, b"", "the file unpacks to no text"),
    ],
)
def test_broken_compressed_patch_says_why(data: bytes, text: bytes, fault: str) -> None:
    raw = multipart("mixed", PLAIN, packed("application/gzip", "x.patch.gz", data))
    assert read_patch_files(raw) == (PatchFile("x.patch.gz", text.decode(), fault),)
    assert "text_capped" not in read(raw).flags


@pytest.mark.parametrize("suffix", PACK)
def test_what_precedes_damage_is_read(suffix: str) -> None:
    data = PACK[suffix](LONG)
    raw = multipart("mixed", PLAIN, packed("application/x", "x.patch", data[: len(data) // 2]))
    [file] = read_patch_files(raw)
    assert LONG.decode().startswith(file.text)
    assert file.fault.endswith(" data is cut off")


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["x.patch.{}", "x.{}"])
def test_compressed_patch_is_cut_at_the_limit(
    suffix: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", len(PATCH) + 3)
    bomb = packed("application/x", name.format(suffix), PACK[suffix](PATCH + b"\n" * (20 << 20)))
    message = read(multipart("mixed", PLAIN, *[bomb] * 3))
    assert "".join(message.patch_texts) == f"{PATCH.decode()}\n\n\n"
    assert "text_capped" in message.flags


@pytest.mark.parametrize("suffix", PACK)
def test_streams_of_a_compressed_patch_are_bounded(suffix: str) -> None:
    data = PACK[suffix](b"") * MAX_STREAMS + PACK[suffix](PATCH)
    message = read(multipart("mixed", PLAIN, packed("application/x", "x.patch.gz", data)))
    assert message.patch_texts == ("",)
    assert "text_capped" in message.flags
