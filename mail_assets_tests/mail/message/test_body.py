"""The choice of the body among the parts; attachments, and patches among these."""

import base64
import binascii
import bz2
import gzip
import hashlib
import lzma

import pytest
import zstandard

from mail_assets.mail.archive.compression import MAX_STREAMS
from mail_assets.mail.message import body
from mail_assets.mail.message import body as module
from mail_assets.mail.message.body import PatchFile, read_patch_files
from mail_assets.mail.message.html_text import html_to_text
from mail_assets.mail.message.message import Message
from mail_assets_tests.mail.mails import HTML, PATCH, PLAIN, multipart, named, read_mail

FORWARD = "-------- Forwarded Message --------\n"
FOOTER = b"Content-Type: text/plain\n\nlist footer\n"
EMPTY_HTML = b"Content-Type: text/html\n\n<p></p>\n"
CALENDAR = b"""\
BEGIN:VCALENDAR\r
BEGIN:VTIMEZONE\r
DTSTART:16010101T000000\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
SUMMARY:Rev\r
 iew\r
DTSTART;TZID="Europe/Madrid":20260105T150000\r
DTEND:20260105T160000Z\r
LOCATION;ALTREP="http://example.org/a:b":Room 1\\, 2nd floor\r
DESCRIPTION:Agenda:\\nleases\r
BEGIN:VALARM\r
DESCRIPTION:REMINDER\r
END:VALARM\r
END:VEVENT\r
END:VCALENDAR\r
"""
NO_HTML = b"Your mail reader does not support HTML."


def read(raw: bytes) -> Message:
    return read_mail(b"Subject: s\n" + raw)


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
        (multipart("mixed", PLAIN, HTML), "plain", "plain\nrich", []),
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
            f"plain\n\n{FORWARD}Subject: s\n\ninner",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"),
            "plain",
            f"{FORWARD}Subject: s\n\ninner",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nno headers"),
            "plain",
            f"{FORWARD}\nno headers",
            ["message"],
        ),
        (
            multipart("digest", b"\nSubject: a\n\none", b"\nSubject: b\n\ntwo"),
            "plain",
            f"{FORWARD}Subject: a\n\none\n\n{FORWARD}Subject: b\n\ntwo",
            ["message", "message"],
        ),
        (
            multipart("mixed", PLAIN, b"Content-Type: application/ms-tnef\n\nx"),
            "plain",
            "plain\n",
            ["winmail.dat"],
        ),
        (multipart("mixed", b"Content-Type: message/rfc822\n\n\n"), "none", "", ["message"]),
        (b"Content-Type: application/pgp; format=text\n\nsigned\n", "plain", "signed\n", []),
        (
            multipart("mixed", PLAIN, b"Content-Type: text/enriched\n\n<bold>plain</bold>"),
            "plain",
            "plain\n",
            [""],
        ),
        (
            multipart("alternative", PLAIN, b"Content-Type: text/enriched\n\n<bold>plain</bold>"),
            "plain",
            "plain\n",
            [],
        ),
        (
            b"Content-Type: text/enriched\n\n<bold>a</bold>\nb << c\n\n\nd<param>red</param>\n",
            "enriched",
            "a b < c\n\nd",
            [],
        ),
        # RFC 2046 section 4.1.4
        (b"Content-Type: text/x-unheard-of\n\nwords\n", "plain", "words\n", [""]),
        (b"Content-Type: text/vcard\n\nBEGIN:VCARD\n", "none", "", [""]),
        # a tracking image shows nothing and is no attachment
        (multipart("alternative", b"Content-Type: text/html\n\n<img src=x>\n"), "none", "", []),
        (
            multipart("mixed", PLAIN, b"Content-Type: text/html\n\n<p><img src=x></p>\n"),
            "plain",
            "plain\n",
            [],
        ),
        (
            b"Content-Type: text/calendar\n\n" + CALENDAR,
            "calendar",
            "Review\nStart: 2026-01-05 15:00 Europe/Madrid\nEnd: 2026-01-05 16:00 UTC"
            "\nLocation: Room 1, 2nd floor\n\nAgenda:\nleases",
            ["invite.ics"],
        ),
    ],
)
def test_body_and_attachments_are_read(raw: bytes, kind: str, text: str, names: list[str]) -> None:
    found = read(raw)
    assert (found.body_kind, found.body_text) == (kind, text)
    assert [attachment.name for attachment in found.attachments] == names


INNER = (
    b"From: Ann <ann@example.org>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\nSubject: lease\n\ninner\n"
)
INNER_TEXT = (
    f"{FORWARD}From: Ann <ann@example.org>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
    "Subject: lease\n\ninner\n"
)


@pytest.mark.parametrize(
    "attached",
    [
        b"Content-Type: message/rfc822\n\n" + INNER,
        b"Content-Type: message/rfc822\nContent-Disposition: attachment\n\n" + INNER,
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(INNER),
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n"
        + binascii.b2a_qp(INNER, istext=True).replace(b"From:", b"=46rom:"),
        b"Content-Type: message/global\n\n" + INNER,
    ],
)
def test_attached_text_follows_below_its_own_head(attached: bytes) -> None:
    raw = b"Subject: s\n" + multipart("mixed", PLAIN, attached)
    found = read_mail(raw)
    assert found.body_text.rstrip() == f"plain\n\n{INNER_TEXT}".rstrip()
    [(start, text_start)] = found.attached_texts
    assert found.body_text[:start] == "plain\n\n"
    assert found.body_text[text_start:].startswith("inner")
    assert [one.name for one in found.attachments] == ["message"]


def test_id_is_made_of_the_own_text_only() -> None:
    plain, attached = (
        read(raw)
        for raw in (PLAIN, multipart("mixed", PLAIN, b"Content-Type: message/rfc822\n\n" + INNER))
    )
    assert plain.message_id == attached.message_id


def test_attached_texts_are_cut_with_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_BODY", 100)
    message = b"Content-Type: message/rfc822\n\nSubject: s\n\n" + b"x" * 30 + b"\n"
    raw = multipart("digest", *[message] * 9)
    found = read_mail(raw)
    assert len(found.body_text) == 100
    assert "text_capped" in found.flags
    assert all(text_start <= 100 for _, text_start in found.attached_texts)
    assert len(found.attachments) == 9


def alternative(plain: str, html: str) -> bytes:
    return multipart(
        "alternative",
        b"Content-Type: text/plain; charset=utf-8\n\n" + plain.encode() + b"\n",
        b"Content-Type: text/html; charset=utf-8\n\n" + html.encode() + b"\n",
    )


LONG = "<p>The buoy drifts. We moor it again on Monday, and Jo checks the chain.</p>"


@pytest.mark.parametrize("letter", "\u200b\u2060\xad\u034f\u200e\u3164\u2800\ufeff\xa0\u115f")
def test_plain_form_without_a_visible_letter_gives_way(letter: str) -> None:
    found = read(alternative(letter, LONG))
    assert (found.body_kind, found.body_text) == ("html", html_to_text(LONG))
    assert (found.attachments, "no_text" in found.flags) == ((), False)


@pytest.mark.parametrize("pointer", [
    "Please view this email in your browser: http://example.org/v?id=1",
    "This is an HTML message. Please use an HTML capable mail program.",
    "Your email client does not support HTML.", "To view this message, open it in a web browser.",
    "This message is in MIME format.", "If you cannot see this newsletter, click here",
    "View online: https://example.org/a", "[HTML]", "-",
    "https://example.org/newsletter/2026/01/view?recipient=0123456789abcdef0123456789abcdef",
    "Diese Nachricht wurde im HTML-Format gesendet.",
    "Falls Sie diese E-Mail nicht lesen können, öffnen Sie sie im Browser.",
    "Ce message est au format HTML.",
    "Si ce message ne s'affiche pas, consultez la version en ligne.",
    "Si no puede ver este mensaje, ábralo en su navegador.",
    "Se non visualizzi la mail, apri la versione web",
    "Если письмо не отображается, откройте его в браузере.", "このメールはHTML形式です。",
    "如果您无法查看此邮件，请在浏览器中打开。",
    "Sorry, no plain text version of this message is available.",
    "Your mail reader cannot display rich text",
])  # fmt: skip
def test_plain_form_that_points_to_the_html_gives_way(pointer: str) -> None:
    for html in (LONG, LONG * 20):
        assert read(alternative(pointer, html)).body_text == html_to_text(html)


@pytest.mark.parametrize(("plain", "html"), [
    ("Yes.", "<p>Yes.</p><blockquote type=cite>" + LONG * 20 + "</blockquote>"),
    ("Does the browser show it?", "<p>Does the browser show it?</p>"),
    ("I mend the HTML tomorrow.", "<p>I mend the HTML tomorrow.</p><p>Jo</p>"),
    ("Your browser shows the buoy.", "<img src=x>"),
    ("The buoy drifts. " * 60 + "See the HTML.", LONG),
    ("short", "<p>short</p>"),
])  # fmt: skip
def test_plain_form_with_the_message_is_the_body(plain: str, html: str) -> None:
    found = read(alternative(plain, html))
    assert (found.body_kind, found.body_text.strip()) == ("plain", plain.strip())


FILE = named("application/pdf", "a.pdf", b"%PDF", "inline")


@pytest.mark.parametrize(("parts", "kind", "text", "names"), [
    ([PLAIN, FILE, HTML], "plain", "plain\nrich", ["a.pdf"]),
    ([HTML, FILE, PLAIN], "html", "rich\nplain\n", ["a.pdf"]),
    ([PLAIN, FILE, HTML.replace(b"rich", b"plain")], "plain", "plain\n", ["a.pdf", ""]),
    ([PLAIN, FILE, HTML, PLAIN], "plain", "plain\nrich\nplain\n", ["a.pdf"]),
    ([alternative("first words", "<p>first words</p>"), FILE, HTML], "plain", "first words\nrich",
     ["a.pdf"]),
    ([PLAIN, FILE, b"Content-Type: text/enriched\n\nmore"], "plain", "plain\nmore", ["a.pdf"]),
])  # fmt: skip
def test_text_after_a_file_is_joined_if_it_is_new(
    parts: list[bytes], kind: str, text: str, names: list[str]
) -> None:
    found = read(multipart("mixed", *parts, boundary="outer"))
    assert (found.body_kind, found.body_text) == (kind, text)
    assert [one.name for one in found.attachments] == names


ATTACHED = b"Content-Disposition: attachment\n"


@pytest.mark.parametrize(("raw", "text"), [
    (ATTACHED + b"Content-Type: text/plain\n\nonly here\n", "only here\n"),
    (ATTACHED + b"\nonly here\n", "only here\n"),
    (ATTACHED + b"Content-Type: text/html\n\n<p>only here", "only here"),
    (b"Content-Disposition: attachment; filename=a.txt\n\nonly here\n", "only here\n"),
    (multipart("mixed", ATTACHED + b"\nonly here"), "only here"),
    (multipart("mixed", ATTACHED + b"\nonly here", FILE), "only here"),
    (multipart("mixed", ATTACHED + PLAIN, b"\nbody"), "body"),
])  # fmt: skip
def test_text_marked_as_an_attachment_is_read_without_any_other(raw: bytes, text: str) -> None:
    assert read(raw).body_text == text


@pytest.mark.parametrize(("raw", "flag"), [
    (multipart("mixed", FILE), True),
    (multipart("mixed", named("text/plain", "a.txt", b"t")), True),
    (b"Content-Type: text/html\n\n<img src=x>\n", True),
    (b"Content-Type: image/png\n\n\x89PNG\n", True),
    (multipart("mixed", b"Content-Type: application/ms-tnef\n\nx"), True),
    (b"\n\xe2\x80\x8b\n", True),
    (b"\n\n \n", False),
    (b"\n", False),
    (multipart("mixed", b"\n\n"), False),
    (b"\nwords\n", False),
    (multipart("mixed", b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"), False),
])  # fmt: skip
def test_content_without_any_text_is_flagged(raw: bytes, flag: bool) -> None:
    assert ("no_text" in read(raw).flags) is flag


def test_attachment_is_described_by_its_decoded_bytes() -> None:
    part = named("application/pdf", "a.pdf\nContent-Transfer-Encoding: base64", b"aGVsbG8=")
    (found,) = read_mail(multipart("mixed", PLAIN, part)).attachments
    assert (found.name, found.type, found.size) == ("a.pdf", "application/pdf", 5)
    assert found.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert (found.position, found.is_patch) == (1, False)


@pytest.mark.parametrize(("media", "name", "data", "is_patch"), [
    ("text/x-diff", "x", PATCH, True),
    ("text/x-patch; charset=latin1", "x", PATCH, True),
    ("application/octet-stream", "v1-0001-x.patch", PATCH, True),
    ("text/plain", "x.DIFF", PATCH, True),
    ("text/plain", "x.txt", PATCH, True),
    ("text/plain", "x.txt", b"text\n\n*** a/x.c\tMon\n--- b/x.c\tTue\n", True),
    ("text/plain", "x.txt", b"Index: x.c\n====\n", False),
    ("text/plain", "notes.txt", b"--- \nno patch\n", False),
    ("application/gzip", "x.patch.gz", PATCH, True),
])  # fmt: skip
def test_patches_are_known_by_type_name_or_content(
    media: str, name: str, data: bytes, is_patch: bool
) -> None:
    message = read_mail(multipart("mixed", PLAIN, named(media, name, data)))
    assert [found.is_patch for found in message.attachments] == [is_patch]
    assert message.patch_texts == ((data.decode(),) if is_patch else ())


def test_patch_text_is_cut_at_the_limit_of_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PATCH_TEXT", len(PATCH) + 3)
    parts = [named("text/x-diff", "x", PATCH)] * 2
    found = read_mail(multipart("mixed", PLAIN, *parts))
    assert found.patch_texts == (PATCH.decode(), "---")
    assert found.flags == ("date_repaired", "generated_id", "text_capped")


@pytest.mark.parametrize(("media", "name", "data", "is_patch"), [
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
])  # fmt: skip
def test_patch_is_known_by_its_content(media: str, name: str, data: bytes, is_patch: bool) -> None:
    message = read_mail(multipart("mixed", PLAIN, named(media, name, data)))
    assert [found.is_patch for found in message.attachments] == [is_patch]


@pytest.mark.parametrize(("fields", "name"), [
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
])  # fmt: skip
def test_name_of_a_file_may_have_blanks_and_folders(fields: str, name: str) -> None:
    part = f"{fields}\n\n".encode() + PATCH
    (found,) = read_mail(multipart("mixed", PLAIN, part)).attachments
    assert (found.name, found.is_patch) == (name, True)


PACK = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
GZ = PACK["gz"](PATCH)
LONG_FILE = PATCH + b"".join(b"%x\n" % n**9 for n in range(3_000))


def packed(media: str, name: str, data: bytes) -> bytes:
    """A compressed part as mail programs send it."""
    return named(f"{media}\nContent-Transfer-Encoding: base64", name, base64.encodebytes(data))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(("media", "name"), [
    ("application/octet-stream", "v3-0001-Foo.patch.{}"),
    ("application/x-{}", "FIX.DIFF.{}"),
    ("application/{}", "crane.{}"),
    ("application/x-unknown", ""),
    ("text/x-patch; charset=utf-8", "fix.patch.2.{}"),
    ("application/octet-stream", "named-wrongly.patch"),
    ("application/octet-stream", "named-wrongly.patch.bz2"),
])  # fmt: skip
def test_compressed_patch_is_read(suffix: str, media: str, name: str) -> None:
    name = name.format(suffix)
    raw = multipart("mixed", PLAIN, packed(media.format(suffix), name, PACK[suffix](PATCH)))
    message = read_mail(raw)
    assert [(one.name, one.is_patch) for one in message.attachments] == [(name, True)]
    assert message.attachments[0].size == len(PACK[suffix](PATCH))
    assert message.patch_texts == (PATCH.decode(),)
    assert read_patch_files(raw) == (PatchFile(name, PATCH.decode()),)


@pytest.mark.parametrize(("name", "data"), [
    ("dmesg.gz", PACK["gz"](b"words\n")),
    ("list.mbox.gz", GZ),
    ("cranes.tar.gz", PACK["gz"](b"crane.patch".ljust(512, b"\0") + PATCH)),
    ("twice.gz.gz", PACK["gz"](GZ)),
    ("config.xz", b"\xfd7zXZ\0damage"),
    ("late.gz", PACK["gz"](b"words\n" * 20_000 + PATCH)),
])  # fmt: skip
def test_other_compressed_files_are_no_patches(name: str, data: bytes) -> None:
    message = read_mail(multipart("mixed", PLAIN, packed("application/octet-stream", name, data)))
    assert [found.is_patch for found in message.attachments] == [False]
    assert message.patch_texts == ()


@pytest.mark.parametrize(("data", "text", "fault"), [
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
])  # fmt: skip
def test_broken_compressed_patch_says_why(data: bytes, text: bytes, fault: str) -> None:
    raw = multipart("mixed", PLAIN, packed("application/gzip", "x.patch.gz", data))
    assert read_patch_files(raw) == (PatchFile("x.patch.gz", text.decode(), fault),)
    assert "text_capped" not in read_mail(raw).flags


@pytest.mark.parametrize("suffix", PACK)
def test_what_precedes_damage_is_read(suffix: str) -> None:
    data = PACK[suffix](LONG_FILE)
    raw = multipart("mixed", PLAIN, packed("application/x", "x.patch", data[: len(data) // 2]))
    [file] = read_patch_files(raw)
    assert LONG_FILE.decode().startswith(file.text)
    assert file.fault.endswith(" data is cut off")


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["x.patch.{}", "x.{}"])
def test_compressed_patch_is_cut_at_the_limit(
    suffix: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", len(PATCH) + 3)
    bomb = packed("application/x", name.format(suffix), PACK[suffix](PATCH + b"\n" * (20 << 20)))
    message = read_mail(multipart("mixed", PLAIN, *[bomb] * 3))
    assert "".join(message.patch_texts) == f"{PATCH.decode()}\n\n\n"
    assert "text_capped" in message.flags


@pytest.mark.parametrize("suffix", PACK)
def test_streams_of_a_compressed_patch_are_bounded(suffix: str) -> None:
    data = PACK[suffix](b"") * MAX_STREAMS + PACK[suffix](PATCH)
    message = read_mail(multipart("mixed", PLAIN, packed("application/x", "x.patch.gz", data)))
    assert message.patch_texts == ("",)
    assert "text_capped" in message.flags
